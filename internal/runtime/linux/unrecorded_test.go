package linux_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// A sandbox whose record was damaged or lost while it ran: the next process ends
// its guest and removes its control group, and touches no other sandbox.
func TestGuestsWithoutARecordAreEnded(t *testing.T) {
	grouptest.Need(t)
	for name, damage := range map[string]func(t *testing.T, dir string) error{
		"half a record":     func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, "record.json"), 100) },
		"no record":         func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "record.json")) },
		"no directory":      func(_ *testing.T, dir string) error { return os.RemoveAll(dir) },
		"no record, paused": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "record.json")) },
	} {
		for _, anew := range []bool{false, true} {
			l := newSite(t)
			l.noGuestsLeft(name == "no record, paused", anew, func(dir string) error { return damage(t, dir) })
			if t.Failed() {
				t.Fatalf("%s, made anew: %v", name, anew)
			}
		}
	}
}

func (l *site) noGuestsLeft(paused, anew bool, damage func(dir string) error) {
	l.t.Helper()
	one, other := l.born("one"), l.born("other")
	if paused {
		if err := one.(sandbox.Pauser).Pause(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := damage(filepath.Join(l.state, "linux", "one")); err != nil {
		l.t.Fatal(err)
	}
	if anew {
		if _, err := l.Create(l.t.Context(), victimSpec("one")); err != nil {
			l.t.Error(err)
		}
	}
	if left, err := l.Runtime.(*linux.Runtime).Unrecorded(l.t.Context()); len(left) != 1 && !anew || err != nil {
		l.t.Errorf("unrecorded: %v, %v", left, err)
	}
	if err := l.Runtime.(sandbox.Sweeper).Sweep(l.t.Context(), "one"); err != nil {
		l.t.Error(err)
	}
	l.comeAfter("one")
	if state, err := other.State(l.t.Context()); state != sandbox.StateRunning || err != nil {
		l.t.Errorf("the other sandbox is %q, %v", state, err)
	}
	l.comeAfter("other")
	l.nothingLeft([]string{one.Seen().ID, other.Seen().ID})
}

func (l *site) born(name string) sandbox.Instance {
	l.t.Helper()
	i, err := l.Create(l.t.Context(), victimSpec(name))
	if err == nil {
		err = i.Start(l.t.Context())
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return i
}

// What is left without a record is listed, for those that have no row either.
func TestUnrecorded(t *testing.T) {
	grouptest.Need(t)
	l := newSite(t)
	one := l.born("one")
	l.born("two")
	if err := os.Truncate(filepath.Join(l.state, "linux", "one", "record.json"), 10); err != nil {
		t.Fatal(err)
	}
	names, err := l.Runtime.(*linux.Runtime).Unrecorded(t.Context())
	if err != nil || len(names) != 1 || names[0] != "one" {
		t.Errorf("%v, %v", names, err)
	}
	l.comeAfter("one")
	l.comeAfter("two")
	l.nothingLeft([]string{one.Seen().ID})
}
