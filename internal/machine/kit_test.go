package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a machine on a fresh guest.
func start(t *testing.T) (*machinetest.Guest, *machine.Machine) {
	t.Helper()
	g := machinetest.Start(t, nil)
	return g, g.Machine(t, nil)
}

// patience bounds every command of these tests.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// captured is a command's result with all it wrote.
type captured struct {
	*machine.Result
	out, err string
}

// sh runs a script and fails the test if it could not be run.
func sh(t *testing.T, m *machine.Machine, script string) captured {
	t.Helper()
	return run(t, m, &machine.Command{Argv: []string{"/bin/sh", "-c", script}})
}

func run(t *testing.T, m *machine.Machine, command *machine.Command) captured {
	t.Helper()
	var out, errs bytes.Buffer
	if command.Stdout == nil {
		command.Stdout = &out
	}
	if command.Stderr == nil {
		command.Stderr = &errs
	}
	result, err := m.Exec(patience(t), command)
	if err != nil {
		t.Fatalf("exec %.80q: %v", strings.Join(command.Argv, " ")+command.Shell, err)
	}
	return captured{result, out.String(), errs.String()}
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// alive lists the commands of all processes in the sandbox, but for the guest
// and the one that asks.
func alive(t *testing.T, m *machine.Machine) []string {
	t.Helper()
	out := sh(t, m, `for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n = 1 ] || [ $n = $$ ] || { tr '\0' ' ' < $p/cmdline; echo; }; done 2>/dev/null; true`).out
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "tr ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// stop and resume are what an engine's pause does, for the guest alone.
func stop(t *testing.T, g *machinetest.Guest) {
	t.Helper()
	if err := g.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	eventually(t, "it stands still", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Process.Pid))
		return err == nil && bytes.Contains(status, []byte("State:\tT"))
	})
}

func resume(t *testing.T, g *machinetest.Guest) {
	t.Helper()
	if err := g.Process.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
}
