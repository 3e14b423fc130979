package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kept is output that is looked at while it grows.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// following is a command line at work in the background.
type following struct {
	*testing.T
	cmd      *exec.Cmd
	out, err kept
	ended    chan struct{}
}

func (d *dock) begin(line string) *following { return d.beginWith(nil, line) }

func (d *dock) beginWith(stdin io.Reader, line string) *following {
	d.Helper()
	f := &following{T: d.T, cmd: d.command(d.words(line)...), ended: make(chan struct{})}
	f.cmd.Stdin, f.cmd.Stdout, f.cmd.Stderr = stdin, &f.out, &f.err
	must(d.T, f.cmd.Start())
	go func() { _ = f.cmd.Wait(); close(f.ended) }()
	d.Cleanup(func() { _ = f.cmd.Process.Kill(); <-f.ended })
	return f
}

// until waits for something that a follower has shown.
func (f *following) until(words string) {
	f.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(f.out.String(), words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("%s does not show %q: %s%s", f.cmd.Args, words, f.out.String(), f.err.String())
		}
	}
}

func (f *following) end() outcome {
	f.Helper()
	select {
	case <-f.ended:
	case <-time.After(patience):
		_ = f.cmd.Process.Kill()
		<-f.ended
		f.Errorf("%s did not end within %v", f.cmd.Args, patience)
	}
	return outcome{ticks.ReplaceAllString(f.out.String(), "tick\n"), f.err.String(), f.cmd.ProcessState.ExitCode()}
}

// ticks are what a main command prints until all who follow it have seen it.
var ticks = regexp.MustCompile(`(tick\n)+`)

// talk is a main command that ticks while there is a file, and ends when there
// is another.
const talk = "sh -c echo_first;_echo_problem_>&2;_while_!_test_-e_/work/go;_do_test_!_-e_/work/tick_||_echo_tick;_sleep_0.1;_done;_echo_last;_exit_5"

// place puts a file where the main command looks for it.
func (d *dock) place(name string) {
	d.Helper()
	must(d.T, os.WriteFile(filepath.Join(d.dir, name), nil, 0o644))
}

// Outputs of a command that runs are followed to its end: from the start on, the
// last lines of it, or only what is new.
func TestOutputsAreFollowedAsByTheRealDocker(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{
		"detached":            "run -d --name NAME --network none -v DIR:/work IMAGE " + talk,
		"created and started": "create -i --name NAME --network none -v DIR:/work IMAGE " + talk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := followed(realDock(t), start)
			for _, m := range machineries() {
				t.Run(m.name, func(t *testing.T) {
					if diff := cmp.Diff(theirs, followed(ourDock(t, m), start)); diff != "" {
						t.Errorf("(-docker +atoll):\n%s", diff)
					}
				})
			}
		})
	}
}

func followed(d *dock, start string) (all []outcome) {
	d.Helper()
	all = append(all, d.say("", start), d.say("", "start NAME"))
	d.begin("logs -f NAME").until("first\n")
	jobs := []*following{d.begin("logs -f NAME"), d.begin("logs -f --tail 0 NAME"), d.begin("attach --no-stdin NAME")}
	d.place("tick")
	for _, job := range jobs {
		job.until("tick\n")
	}
	d.place("go")
	for _, job := range jobs {
		all = append(all, d.plain(job.end()))
	}
	end := d.say("", "logs --tail 1 NAME")
	end.Err = "" // the real docker counts the lines of both outputs together
	all = append(all, d.say("", "wait NAME"), end)
	last := d.say("", "logs -f NAME")
	last.Out = ticks.ReplaceAllString(last.Out, "tick\n")
	return append(all, last)
}

// A command that another client attends to can be followed too, also one whose
// container goes with it.
func TestAttendedOutputsAreFollowed(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			run := d.begin("run --rm --name NAME --network none -v DIR:/work IMAGE " + talk)
			run.until("first\n")
			logs := d.begin("logs -f NAME")
			logs.until("first\n")
			d.place("tick")
			logs.until("tick\n")
			d.place("go")
			if got := logs.end(); got.Out != "first\ntick\nlast\n" || got.Err != "problem\n" || got.Code != 0 {
				t.Errorf("logs -f: %+v", got)
			}
			if got := run.end(); got.Out != "first\ntick\nlast\n" || got.Code != 5 {
				t.Errorf("run: %+v", got)
			}
		})
	}
}

// answers is a main command that repeats what is typed.
const answers = "sh -c while_read_x;_do_echo_got_$x;_done;_echo_end_of_input;_exit_6"

// Whoever attaches types into the main command. The end of his input is the
// command's only where it was made for one who attaches.
func TestInputOfAttachedClients(t *testing.T) {
	t.Parallel()
	play := func(d *dock) (all []outcome) {
		all = append(all, d.say("", "create -i --name NAME --network none IMAGE "+answers), d.say("", "start NAME"),
			d.say("one\ntwo\n", "attach NAME"), d.say("", "logs NAME"))
		d.clear()
		all = append(all, d.say("", "run -di --name NAME --network none IMAGE "+answers))
		in, typed, err := os.Pipe()
		must(d.T, err)
		job := &following{T: d.T, cmd: d.command(d.words("attach NAME")...), ended: make(chan struct{})}
		job.cmd.Stdin, job.cmd.Stdout, job.cmd.Stderr = in, &job.out, &job.err
		must(d.T, job.cmd.Start())
		go func() { _ = job.cmd.Wait(); close(job.ended) }()
		_, err = typed.WriteString("three\n")
		must(d.T, err)
		job.until("got three\n")
		must(d.T, typed.Close())
		all = append(all, d.say("", "inspect -f {{.State.Running}}_{{.Config.OpenStdin}}_{{.Config.StdinOnce}}_{{.Config.AttachStdout}} NAME"), d.say("", "kill NAME"))
		return append(all, d.plain(job.end()), d.say("", "logs NAME"))
	}
	theirs := play(realDock(t))
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(theirs, play(ourDock(t, m))); diff != "" {
				t.Errorf("(-docker +atoll):\n%s", diff)
			}
		})
	}
}
