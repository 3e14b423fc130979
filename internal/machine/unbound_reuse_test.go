package machine_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
)

// TestUnboundConnectionsAreReused: commands that are over soon, and refusals,
// leave the connection to the next command; one with input ends it.
func TestUnboundConnectionsAreReused(t *testing.T) {
	g, watcher := listening(t)
	c, m := unboundOn(t, g)
	for i := range 20 {
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"no-such-program"}}); !errors.Is(err, machine.ErrNotFound) {
			t.Fatalf("refusal %d: %v", i, err)
		}
	}
	if c.count() != 1 {
		t.Errorf("20 refusals took %d connections", c.count())
	}
	var out bytes.Buffer
	for _, input := range []string{"one", "two"} {
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"cat"}, Stdin: strings.NewReader(input), Stdout: &out}); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "onetwo" || c.count() != 2 {
		t.Errorf("%q, over %d connections", out.String(), c.count())
	}
	eventually(t, "a short command is followed by another", func() bool {
		before := c.count()
		for range 3 {
			if got := sh(t, m, "echo x; exit 3"); got.out != "x\n" || got.ExitCode != 3 {
				t.Fatalf("%+v", got)
			}
		}
		return c.count() <= before+1 // more on a busy computer, where no command is short
	})
	eventually(t, "the guest keeps nothing but the last result", func() bool {
		info, err := watcher.Info(patience(t))
		return err == nil && info.Processes <= 1
	})
}

// TestUnboundAfterTheGuestClosedIt: a connection whose guest closed it while it was idle
// is not used again.
func TestUnboundAfterTheGuestClosedIt(t *testing.T) {
	g, _ := listening(t)
	c, m := unboundOn(t, g)
	refused := func() {
		t.Helper()
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"no-such-program"}}); !errors.Is(err, machine.ErrNotFound) {
			t.Fatal(err)
		}
	}
	refused()
	c.cut()
	refused()
	if c.count() != 2 {
		t.Errorf("%d connections", c.count())
	}
}
