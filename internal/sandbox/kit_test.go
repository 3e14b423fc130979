package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is an installation with sandboxes that have no walls: for what the
// Manager does itself, whatever the runtime.
type yard struct {
	t       *testing.T
	state   string
	runtime *faulty
	now     *clock
}

func newYard(t *testing.T) *yard {
	t.Helper()
	// A short path: the sockets below it must fit into 108 bytes.
	state, err := os.MkdirTemp("", "atoll") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	y := &yard{t: t, state: state, runtime: &faulty{Runtime: sandboxtest.NewBare(t, state)}, now: &clock{now: time.Now()}}
	t.Cleanup(y.clear)
	return y
}

// clear removes the sandboxes that a test left.
func (y *yard) clear() {
	y.runtime.removal = nil
	ctx := context.WithoutCancel(y.t.Context())
	left, err := y.runtime.List(ctx)
	for _, l := range left {
		inst, openErr := y.runtime.Open(ctx, l.Name)
		if openErr == nil {
			openErr = inst.Remove(ctx)
		}
		err = errors.Join(err, openErr)
	}
	if err != nil {
		y.t.Error(err)
	}
}

// manager is a process of its own on the yard.
func (y *yard) manager(changes ...func(*sandbox.Options)) *sandbox.Manager {
	y.t.Helper()
	db, err := store.Open(y.t.Context(), filepath.Join(y.state, "atoll.db"))
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = db.Close() })
	book, err := filelock.Open(filepath.Join(y.state, "leases"))
	if err != nil {
		y.t.Fatal(err)
	}
	o := sandbox.Options{
		Registry: sandbox.NewRegistry(db), Leases: book, Backends: []string{"test"}, Now: y.now.Now,
		Runtime: func(context.Context, string) (sandbox.Runtime, error) { return y.runtime, nil },
	}
	for _, change := range changes {
		change(&o)
	}
	m := sandbox.NewManager(o)
	y.t.Cleanup(m.Close)
	return m
}

func (y *yard) spec(name string) *sandbox.Spec {
	dir := filepath.Join(y.state, "workspace-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		y.t.Fatal(err)
	}
	return &sandbox.Spec{
		Name: name, ScopeKey: "agent:main:" + name, AgentID: "main", Backend: "test", ConfigHash: "hash-1", MountsHash: "mounts-1",
		Image: sandboxtest.BareImage, Workdir: dir,
		Mounts: []sandbox.Mount{{Source: dir, Target: dir, Kind: sandbox.MountWorkspace}},
	}
}

func (y *yard) ensure(m *sandbox.Manager, spec *sandbox.Spec) *sandbox.Handle {
	y.t.Helper()
	h, err := m.Ensure(y.t.Context(), spec)
	if err != nil {
		y.t.Fatalf("ensure: %v", err)
	}
	y.t.Cleanup(h.Release)
	return h
}

func (y *yard) row(m *sandbox.Manager, name string) *sandbox.Entry {
	y.t.Helper()
	e, err := m.Registry.Get(y.t.Context(), name)
	if err != nil {
		y.t.Fatal(err)
	}
	return e
}

// works runs a command in a sandbox.
func works(t *testing.T, h *sandbox.Handle) {
	t.Helper()
	result, err := h.Machine.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/true"}})
	if err != nil || result.ExitCode != 0 {
		t.Errorf("a command: %+v, %v", result, err)
	}
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// faulty is a runtime whose sandboxes cannot be removed while a test says so, or
// mount something else than was checked.
type faulty struct {
	sandbox.Runtime
	removal   error
	exchanged bool
	ended     string // why its sandboxes are dead
	saving    error  // of Save
	saved     int    // calls of Save
}

type faultyInstance struct {
	sandbox.Instance
	runtime *faulty
}

func (f *faulty) Open(ctx context.Context, name string) (sandbox.Instance, error) {
	inst, err := f.Runtime.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyInstance{inst, f}, nil
}

func (i *faultyInstance) Seen() sandbox.Summary {
	seen := i.Instance.Seen()
	if i.runtime.ended != "" {
		seen.State, seen.Problem, seen.SavedAt = sandbox.StateDead, i.runtime.ended, time.UnixMilli(1000)
	}
	return seen
}

func (i *faultyInstance) Keeps([]sandbox.Mount) bool { return !i.runtime.exchanged }

func (i *faultyInstance) Save(context.Context) error {
	i.runtime.saved++
	return i.runtime.saving
}

func (i *faultyInstance) Remove(ctx context.Context) error {
	if i.runtime.removal != nil {
		return i.runtime.removal
	}
	return i.Instance.Remove(ctx)
}
