package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStreamsThatAreMissing: what the program opens is not taken for one of them.
func TestStreamsThatAreMissing(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machinery{"linux", "linux", 0})
	d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
	for without, want := range map[string]outcome{
		"<&-": {"words\n", "sorry\n", 3}, ">&-": {"", "sorry\n", 3}, "2>&-": {"words\n", "", 3},
		"<&- >&-": {"", "sorry\n", 3}, "<&- >&- 2>&-": {"", "", 3},
	} {
		var out, problems strings.Builder
		cmd := d.command()
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" ` + without, d.program},
			d.words("exec -i NAME sh -c cat;_echo_words;_echo_sorry_>&2;_exit_3")...)
		cmd.Stdout, cmd.Stderr = &out, &problems
		_ = cmd.Run()
		if got := (outcome{out.String(), problems.String(), cmd.ProcessState.ExitCode()}); got != want {
			t.Errorf("%s: %+v, want %+v", without, got, want)
		}
	}
	leases, err := os.ReadFile(filepath.Join(d.dir, "..", "state", "leases"))
	if err != nil || len(leases) > 0 {
		t.Errorf("the leases hold %q, %v", leases, err)
	}
}

// TestToldToLeaveAtTheFirstWord: a signal that comes right after the first output
// ends the command inside, and the exit code says so.
func TestToldToLeaveAtTheFirstWord(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machinery{"linux", "linux", 0})
	d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		for range 10 {
			cmd := d.command(d.words("exec NAME sh -c echo_ready;_exec_sleep_1234")...)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			_, err = out.Read(make([]byte, 1))
			must(t, err)
			must(t, cmd.Process.Signal(signal))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("%v: %v", signal, cmd.ProcessState)
			}
		}
	}
	if got := d.say("", "exec NAME sh -c ps_|_grep_-c_[s]leep.1234"); strings.TrimSpace(got.Out) != "0" {
		t.Errorf("no sleep should be left, found %+v", got)
	}
}
