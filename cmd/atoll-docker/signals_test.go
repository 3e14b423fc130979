package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ending is one way in which a command ends that a client attends to.
type ending struct {
	name   string
	traps  string         // what the command does with signals
	signal syscall.Signal // sent to the client, or
	line   string         // said by somebody else
}

var endings = []ending{
	{"asked to end", "trap_'echo_term;_exit_3'_TERM", syscall.SIGTERM, ""},
	{"the terminal has gone", "trap_'echo_hup;_exit_4'_HUP", syscall.SIGHUP, ""},
	{"a signal with another meaning", "trap_'echo_usr1;_exit_5'_USR1", syscall.SIGUSR1, ""},
	{"stopped by another", "trap_'echo_term;_exit_6'_TERM", 0, "stop NAME"},
	{"told by another", "trap_'echo_usr2;_exit_7'_USR2", 0, "kill -s USR2 NAME"},
	{"killed by another", ":", 0, "kill NAME"},
	{"removed by another", ":", 0, "rm -f NAME"},
}

// play has a command run until it is ended, and returns what all have seen.
func (e *ending) play(d *dock) (all []outcome) {
	d.Helper()
	run := d.begin("run --name NAME --network none IMAGE sh -c " + e.traps + ";_echo_ready;_while_:;_do_sleep_0.1;_done")
	run.until("ready\n")
	wait := d.begin("wait NAME")
	if e.signal != 0 {
		must(d.T, run.cmd.Process.Signal(e.signal))
	} else {
		all = append(all, d.say("", e.line))
	}
	all = append(all, d.plain(run.end()))
	wait.end() // it may have come too late for a container that was removed
	all = append(all, d.say("", "inspect -f {{.State.Status}}_{{.State.ExitCode}} NAME"))
	d.clear()
	return all
}

// Signals that a client gets are its command's, and what others send reaches the
// command too; in the end all see the command's own code.
func TestSignalsReachTheCommandAsWithTheRealDocker(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			theirs := e.play(realDock(t))
			for _, m := range machineries() {
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					if diff := cmp.Diff(theirs, e.play(ourDock(t, m))); diff != "" {
						t.Errorf("(-docker +atoll):\n%s", diff)
					}
				})
			}
		})
	}
}

// Whoever insists gets rid of the client and of a command that does not listen.
func TestThreeSignalsEndTheClient(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			run := d.begin("run --name NAME --network none IMAGE sh -c trap_'echo_caught'_TERM;_echo_ready;_while_:;_do_sleep_0.1;_done")
			run.until("ready\n")
			for range 2 {
				seen := run.out.String()
				must(t, run.cmd.Process.Signal(syscall.SIGTERM))
				run.until(seen + "caught\n")
			}
			must(t, run.cmd.Process.Signal(syscall.SIGTERM))
			if got := run.end(); got.Code != 1 || !strings.HasSuffix(got.Err, "got 3 SIGTERM/SIGINTs, forcefully exiting\n") {
				t.Errorf("%+v", got)
			}
			if got := d.say("", "ps -q --filter name=NAME"); got.Out != "" {
				t.Errorf("it runs on: %+v", got)
			}
		})
	}
}

// A client that is told to leave leaves without a word, and takes the command of
// an exec with it; one whose container is taken away says how that ended.
func TestInterruptedClientsAreQuiet(t *testing.T) {
	t.Parallel()
	const command = " sh -c echo_ready;_exec_sleep_1234"
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			d.say("", "run -d --name NAME --network none IMAGE"+command)
			d.begin("logs -f NAME").until("ready\n")
			for _, line := range []string{"logs -f NAME", "exec NAME" + command} {
				job := d.begin(line)
				job.until("ready\n")
				must(t, job.cmd.Process.Signal(syscall.SIGTERM))
				if got := job.end(); got.Code != exitInterrupted || got.Err != "" {
					t.Errorf("docker %s: %+v", line, got)
				}
			}
			if got := d.say("", "exec NAME sh -c ps_|_grep_-c_[s]leep.1234"); strings.TrimSpace(got.Out) != "1" {
				t.Errorf("one sleep should be left, found %+v", got)
			}
			job := d.begin("exec NAME" + command)
			job.until("ready\n")
			d.clear()
			if got := job.end(); got.Code < 128 || got.Err != "" {
				t.Errorf("exec in a container that is removed: %+v", got)
			}
		})
	}
}

// exitInterrupted is the code of a client that was told to leave.
const exitInterrupted = 130

// Output that has nowhere to go ends the client with the reason, as the real
// one says it when it notices in time.
func TestOutputWithoutAReader(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			full := func(line string) {
				cmd := d.command()
				cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" >/dev/full`, d.program}, d.words(line)...)
				if out, _ := cmd.CombinedOutput(); string(out) != "write /dev/stdout: no space left on device\n" || cmd.ProcessState.ExitCode() != 1 {
					t.Errorf("docker %s: %s, code %d", line, out, cmd.ProcessState.ExitCode())
				}
			}
			full("run --rm --name NAME --network none IMAGE head -c 100000 /dev/zero")
			d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
			full("exec NAME echo x")
		})
	}
}
