package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/buildtest"
)

// short are calls that end before the runtime has to start, and some that do not.
var short = []line{
	{"", "exec NAME true"},
	{"", "exec NAME false"},
	{"", "exec NAME sh -c exit_200"},
	{"", "exec NAME sh -c kill_-9_$$"},
	{"", "exec NAME echo words"},
	{"", "exec NAME sh -c echo_one;_echo_two_>&2;_exit_3"},
	{"", "exec NAME sh -c sleep_0.1;_exit_4"},
	{"", "exec NAME sh -c sleep_0.1;_echo_late"},
	{"", "exec NAME no-such-program"},
	{"", "exec -w /none NAME true"},
	{"", "exec -w /tmp -e A=1 --env B=two_words NAME sh -c pwd;_echo_$A_$B_$HOME"},
	{"", "exec --env-file DIR/env NAME sh -c echo_$FROM_FILE_$OTHER"},
	{"", "exec -i NAME true"},
	{"", "exec -i NAME cat"},
	{"some input", "exec -i NAME cat"},
	{"some input", "exec NAME cat"},
	{"some input", "exec -i NAME true"},
	{strings.Repeat("0123456789abcdef\n", 20_000), "exec -i NAME sh -c cat_|_wc_-c"},
	{"first\nsecond\n", "exec -i NAME sh -c read_x;_echo_$x;_sleep_0.1;_cat"},
	{"", "exec NAME sh -c head_-c_200000_/dev/zero_|_tr_'\\0'_x"},
	{"", "exec other true"},
	{"", "exec -e SOME_TOKEN=1 NAME true"},
	{"", "exec"},
}

// TestAHeadStartChangesNothing: a program that is linked to have one and one that
// is not do the same.
func TestAHeadStartChangesNothing(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
			with := recite(d, short)
			d.program = filepath.Join(programs, "atoll-docker-without")
			if diff := cmp.Diff(recite(d, short), with); diff != "" {
				t.Errorf("(-without a head start +with one):\n%s", diff)
			}
		})
	}
}

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

// delayed is how often a machine at work may delay a command that is short.
const delayed = 200

// TestAHeadStartIsOne: the runtime, which touches many pages, does not start for a
// command that is over soon, and it does for one that is not.
func TestAHeadStartIsOne(t *testing.T) {
	d := ourDock(t, machinery{"linux", "linux", 0})
	d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
	const runtimes = 100 // pages, and more
	for line, soon := range map[string]bool{
		"exec NAME true": true, "exec -i NAME sh -c exit_3": true, "exec -i NAME cat": true, "exec NAME sh -c echo_one;_echo_two_>&2": true,
		"exec NAME sleep 0.1": false, "exec NAME sh -c echo_one;_sleep_0.1": false, "version": false,
	} {
		fewest := int64(1 << 40)
		for tries := 0; tries < 3 || soon && fewest >= runtimes && tries < delayed; tries++ {
			cmd := d.command(d.words(line)...)
			var out, problems strings.Builder
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input"), &out, &problems
			_ = cmd.Run()
			fewest = min(fewest, cmd.ProcessState.SysUsage().(*syscall.Rusage).Minflt)
		}
		if (fewest < runtimes) != soon {
			t.Errorf("%s touches %d pages", line, fewest)
		}
	}
}

// TestHeadStartOnARM64 runs that program in an emulator, in a sandbox of this
// machine's.
func TestHeadStartOnARM64(t *testing.T) {
	t.Parallel()
	d := ourDock(t, machinery{"linux", "linux", 0})
	d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
	want := recite(d, short)
	program := filepath.Join(programs, "atoll-docker-arm64")
	must(t, buildtest.Program(t.Context(), program, "atoll-docker", "-s -w "+buildtest.HeadStart, "GOARCH=arm64"))
	emulated := filepath.Join(d.dir, "emulated")
	must(t, os.WriteFile(emulated, []byte("#!/bin/sh\nexec qemu-aarch64-static $STRACE "+program+" \"$@\"\n"), 0o755))
	d.program = emulated
	if diff := cmp.Diff(want, recite(d, short)); diff != "" {
		t.Errorf("(-here +arm64):\n%s", diff)
	}
	d.env = append(d.env, "STRACE=-strace")
	seen := func() bool {
		calls := d.say("", "exec NAME true").Err
		return strings.Contains(calls, "exit_group(0)") && !strings.Contains(calls, "clone(")
	}
	if !slices.ContainsFunc(make([]int, delayed), func(int) bool { return seen() }) {
		t.Error("the runtime starts every time")
	}
}

// TestToldToLeaveAtTheFirstWord: who has seen a word of the command can have it
// ended, however soon, and before the runtime has started too.
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
