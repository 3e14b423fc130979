package sandbox_test

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// TestAttach enters what runs, as it is, and makes nothing.
func TestAttach(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	if _, err := m.Attach(t.Context(), "box"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Fatalf("attach to nothing: %v", err)
	}
	y.ensure(m, y.spec("box"))
	other := y.manager()
	h, err := other.Attach(t.Context(), "box")
	if err != nil {
		t.Fatal(err)
	}
	works(t, h)
	// It counts as a user: nobody removes it meanwhile.
	if err := m.Remove(t.Context(), "box", nil); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("removed while attached: %v", err)
	}
	h.Release()

	inst, err := y.runtime.Open(t.Context(), "box")
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := y.manager().Attach(t.Context(), "box"); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("attach to a stopped one: %v", err)
	}
}

func TestSharesWorkspace(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	spec := y.spec("box")
	y.ensure(m, spec)
	shares := func(want bool) {
		t.Helper()
		got, err := m.Registry.SharesWorkspace(t.Context(), y.row(m, "box"))
		if err != nil || got != want {
			t.Errorf("shared is %v, %v", got, err)
		}
	}
	y.ensure(m, y.spec("stranger"))
	shares(false)
	half := *spec
	half.Name = "box-net"
	y.ensure(m, &half)
	shares(true)
}
