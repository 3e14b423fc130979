package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/terminaltest"
)

// screen is a terminal with a person before it: what is typed goes to the
// program, what the program shows is kept.
type screen struct {
	*testing.T
	master *os.File
	cmd    *exec.Cmd
	size   unix.Winsize

	seen  int // how much of what was shown has been waited for
	mu    sync.Mutex
	shown strings.Builder
	more  chan struct{} // something was shown
	done  chan struct{} // nothing more will be
}

// sit starts a command line of a docker on a terminal of so many rows and
// columns.
func (d *dock) sit(rows, cols uint16, line string) *screen {
	d.Helper()
	master, slave := terminaltest.Open(d.T)
	s := &screen{T: d.T, master: master, cmd: d.command(d.words(line)...), more: make(chan struct{}, 1), done: make(chan struct{})}
	s.resize(rows, cols)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr.Setsid, s.cmd.SysProcAttr.Setctty = true, true
	err := s.cmd.Start()
	_ = slave.Close()
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = master.Close() })
	go s.watch()
	return s
}

// watch keeps what is shown, until the last who has the terminal is gone.
func (s *screen) watch() {
	defer close(s.done)
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		s.shown.Write(buffer[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// await waits until something has been shown, after what was seen before. A
// window that has got another size meanwhile is shaken now and then: the real
// docker misses changes in its first moments.
func (s *screen) await(words string) {
	s.Helper()
	deadline, shake := time.After(patience), time.NewTicker(time.Second)
	defer shake.Stop()
	for !s.has(words) {
		select {
		case <-s.more:
		case <-shake.C:
			s.resize(s.size.Row, s.size.Col+1)
			s.resize(s.size.Row, s.size.Col-1)
		case <-s.done:
			if !s.has(words) {
				s.Fatalf("it ended without %q:\n%s", words, s.text())
			}
			return
		case <-deadline:
			s.Fatalf("%q was not shown within %v:\n%s", words, patience, s.text())
		}
	}
}

// has looks for words after those that were found before.
func (s *screen) has(words string) bool {
	before, _, found := strings.Cut(s.text()[s.seen:], words)
	if found {
		s.seen += len(before) + len(words)
	}
	return found
}

func (s *screen) press(keys string) {
	s.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.Fatal(err)
	}
}

func (s *screen) resize(rows, cols uint16) {
	s.Helper()
	s.size = unix.Winsize{Row: rows, Col: cols}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &s.size); err != nil {
		s.Fatal(err)
	}
}

// end waits for the program's end, and returns what was shown.
func (s *screen) end() outcome {
	s.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.Errorf("it did not end within %v:\n%s", patience, s.text())
		_ = s.cmd.Process.Signal(syscall.SIGKILL)
	}
	_ = s.cmd.Wait()
	return outcome{Out: calls.ReplaceAllString(s.text(), ""), Code: s.cmd.ProcessState.ExitCode()}
}

// scene is what happens between a person and a program.
type scene struct {
	name   string
	before []string // lines, carried out first
	line   string   // what is started on the terminal
	acts   []act
	after  []string // lines whose outcome is compared too
}

// act is what is shown, and what the person does then.
type act struct {
	shown      string
	line       string // carried out by somebody else
	rows, cols uint16 // the window's new size, if it gets one
	keys       string
}

const (
	// sleeper is a main command with a terminal that nobody looks at.
	sleeper = "run -dit --name NAME --network none IMAGE sleep 1000"
	// obey does what is typed, and says when it is done. The terminal echoes: a
	// shell that edits lines would draw them by the clock.
	obey = "echo_ready;_while_read_-r_x;_do_eval_\"$x\";_echo_done;_done"
	done = "done\r\n"
	// sized waits until the window has its size: the real docker gives it a
	// moment after the start.
	sized = "until test \"$(stty size 2>/dev/null)\" = '30 100'; do sleep 0.1; done; stty size\n"
)

// calls are what a main command repeats until somebody has come.
var calls = regexp.MustCompile(`(call\r\n)+`)

var scenes = []scene{
	{"a command of its own", nil, "run -it --name NAME --network none IMAGE sh -c " + obey, []act{
		{shown: "ready", keys: sized},
		{shown: done, keys: "tty; echo term=$TERM; id -u\n"},
		{shown: done, keys: "test -t 0 && test -t 1 && test -t 2 && echo all three\n"},
		{shown: done, keys: "exit 3\n"},
	}, []string{"inspect -f {{.State.ExitCode}}_{{.Config.Tty}} NAME", "logs --tail 3 NAME"}},
	{"a command beside the main one", []string{sleeper}, "exec -it -w /tmp -e A=b NAME sh -c " + obey, []act{
		{shown: "ready", keys: "pwd; echo a=$A\n"}, {shown: done, keys: sized}, {shown: done, keys: "exit 9\n"},
	}, nil},
	{"a window that changes", []string{sleeper}, "exec -it NAME sh -c echo_ready;_until_test_\"$(stty_size_2>/dev/null)\"_=_'40_120';_do_sleep_0.1;_done;_echo_resized", []act{
		{shown: "ready", rows: 40, cols: 120}, {shown: "resized"},
	}, nil},
	{"an interrupt", []string{sleeper}, "exec -it NAME sh -c trap_'echo_caught;_exit_9'_INT;_echo_ready;_while_:;_do_sleep_0.1;_done", []act{
		{shown: "ready", keys: "\x03"},
	}, nil},
	{"the end of input", []string{sleeper}, "exec -it NAME sh -c echo_ready;_cat", []act{
		{shown: "ready", keys: "typed\n"}, {shown: "typed\r\ntyped\r\n", keys: "\x04"},
	}, nil},
	{"output without input", []string{sleeper}, "exec -t NAME sh -c test_-t_1_&&_echo_terminal;_exit_4", nil, nil},
	{"a main command met later",
		[]string{"run -dit --name NAME --network none IMAGE sh -c until_test_-e_/tmp/met;_do_echo_call;_sleep_0.1;_done;_" + obey}, "attach NAME", []act{
			{shown: "call\r\n", line: "exec NAME touch /tmp/met"}, {shown: "ready", keys: sized}, {shown: done, keys: "exit 6\n"},
		}, []string{"inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"}},
	{"a start with input", []string{"create -it --name NAME --network none IMAGE sh -c " + obey}, "start -ai NAME", []act{
		{shown: "ready", keys: "echo started\n"}, {shown: done, keys: "exit 7\n"},
	}, []string{"inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"}},
}

// play plays a scene and returns all that was seen.
func (s *scene) play(d *dock) (all []outcome) {
	d.Helper()
	for _, line := range s.before {
		all = append(all, d.say("", line))
	}
	sitting := d.sit(30, 100, s.line)
	for _, a := range s.acts {
		sitting.await(a.shown)
		if a.line != "" {
			all = append(all, d.say("", a.line))
		}
		if a.rows > 0 {
			sitting.resize(a.rows, a.cols)
		}
		sitting.press(a.keys)
	}
	all = append(all, d.plain(sitting.end()))
	for _, line := range s.after {
		all = append(all, d.say("", line))
	}
	d.clear()
	return all
}

// A person at a terminal sees the same, key by key and window by window.
func TestTerminalsAreThoseOfTheRealDocker(t *testing.T) {
	t.Parallel()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			theirs := s.play(realDock(t))
			t.Logf("%+v", theirs)
			for _, m := range machineries() {
				t.Run(m.name, func(t *testing.T) {
					if diff := cmp.Diff(theirs, s.play(ourDock(t, m))); diff != "" {
						t.Errorf("docker %s (-docker +atoll):\n%s", s.line, diff)
					}
				})
			}
		})
	}
}
