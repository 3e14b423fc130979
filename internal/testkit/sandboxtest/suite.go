// Package sandboxtest is the suite that every runtime passes: a runtime is done
// when it does. It also holds Bare, a runtime without walls, on which the suite
// and the Manager are tested where no engine is needed.
//
// Nothing outside tests imports it.
package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
)

// Subject is a runtime under test.
type Subject struct {
	// Open returns the runtime as a process with this state directory would see
	// it. It is called several times with one directory: each is a new process.
	Open func(t *testing.T, stateDir string) sandbox.Runtime
	// Image is what sandboxes are made from.
	Image string
	// Workdir is where the workspace is seen inside; "" means at its host path.
	Workdir string
	// Walls is whether the runtime isolates: network, root, processes.
	Walls bool
	// Unlimited is set where nothing can limit memory and processes. Then a spec
	// with such limits must be refused.
	Unlimited bool
	// Refused are fields of limits that the runtime has not; nil if it has all. A spec
	// with such limits must be refused.
	Refused []string
	// Copies is set where a sandbox works on a copy of its workspace, which is brought
	// back when it is stopped.
	Copies bool
	// Parallel is set where sandboxes are made elsewhere and tests mostly wait for
	// them: then the cases of a group run beside each other.
	Parallel bool
	// Groups are the groups of cases that are run; nil are all.
	Groups []string
	// Retag makes ref name the first or the second of two images, for the runtime of a
	// state directory; nil where the runtime does not know what a reference names.
	Retag func(t *testing.T, stateDir, ref string, second bool)
}

// stage is one test's installation: state directory, runtime, workspace.
type stage struct {
	Subject
	t       *testing.T
	state   string
	runtime sandbox.Runtime
	names   *atomic.Int64
}

// Run tests s. In a process that the suite started to be killed at some point,
// it becomes that victim instead.
func Run(t *testing.T, s Subject) {
	if victim := victimFromEnvironment(); victim != nil {
		victim.run(t, s)
		return
	}
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"runtime", runtimeCases},
		{"overlay", overlayCases},
		{"names", nameCases},
		{"manager", managerCases},
		{"prune", pruneCases},
		{"crash", crashCases},
		{"pool", append(poolCases, retagCases(s)...)},
	} {
		if s.Groups != nil && !slices.Contains(s.Groups, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					if s.Parallel {
						t.Parallel()
					}
					c.test(newStage(t, s))
				})
			}
		})
	}
}

type testCase struct {
	name string
	test func(*stage)
}

func newStage(t *testing.T, s Subject) *stage {
	t.Helper()
	// A short path: sockets below it must fit into 108 bytes.
	state, err := os.MkdirTemp("", "atoll")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	st := &stage{Subject: s, t: t, state: state, names: new(atomic.Int64)}
	st.runtime = s.Open(t, st.state)
	t.Cleanup(st.sweep)
	return st
}

// sweep removes what a test left.
func (s *stage) sweep() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience)
	defer cancel()
	left, err := s.runtime.List(ctx)
	if err != nil {
		s.t.Errorf("sweep: %v", err)
	}
	for _, l := range left {
		inst, err := s.runtime.Open(ctx, l.Name)
		if err == nil {
			err = inst.Remove(ctx)
		}
		if err != nil {
			s.t.Errorf("sweep %s: %v", l.Name, err)
		}
	}
}

// spec is a small, complete sandbox with a workspace of its own.
func (s *stage) spec(changes ...func(*sandbox.Spec)) *sandbox.Spec {
	s.t.Helper()
	n := s.names.Add(1)
	workspace := filepath.Join(s.state, fmt.Sprintf("workspace-%d", n))
	mustMkdir(s.t, workspace)
	spec := &sandbox.Spec{
		Name:         fmt.Sprintf("atoll-suite-%s-%d", s.tag(), n),
		ScopeKey:     "agent:main",
		AgentID:      "main",
		Backend:      "test",
		ConfigHash:   "hash-1",
		MountsHash:   "mounts-1",
		Image:        s.Image,
		Workdir:      s.inside(workspace),
		Env:          map[string]string{"LANG": "C.UTF-8"},
		ReadOnlyRoot: true,
		Tmpfs:        []sandbox.Tmpfs{{Target: "/tmp"}},
		Network:      "none",
		CapDrop:      []string{"ALL"},
		Mounts:       []sandbox.Mount{{Source: workspace, Target: s.inside(workspace), Kind: sandbox.MountWorkspace, Enclosed: s.Copies}},
	}
	for _, change := range changes {
		change(spec)
	}
	return spec
}

// inside is where a host workspace directory appears in the sandbox.
func (s *stage) inside(hostDir string) string {
	if s.Workdir == "" {
		return hostDir
	}
	return s.Workdir
}

// tag makes names unique on an engine that other tests use at the same time.
func (s *stage) tag() string {
	return strings.TrimPrefix(filepath.Base(s.state), "atoll")
}

// manager is a process of its own on the stage's state directory.
func (s *stage) manager(changes ...func(*sandbox.Options)) *sandbox.Manager {
	s.t.Helper()
	o := ManagerOptions(s.t, s.state, s.Open(s.t, s.state))
	for _, change := range changes {
		change(&o)
	}
	m := sandbox.NewManager(o)
	s.t.Cleanup(m.Close)
	return m
}

// ManagerOptions are those of a manager of the installation in a state directory, with one
// runtime.
func ManagerOptions(t *testing.T, state string, rt sandbox.Runtime) sandbox.Options {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(state, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	book, err := filelock.Open(filepath.Join(state, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Options{
		Registry: sandbox.NewRegistry(db), Leases: book, Backends: []string{"test"},
		Runtime: fixedRuntime(rt), SetupTimeout: 30 * time.Second,
	}
}
