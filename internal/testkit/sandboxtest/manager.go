package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

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

func at(c *clock) func(*sandbox.Options) { return func(o *sandbox.Options) { o.Now = c.Now } }

// again is spec with another configuration.
func again(spec *sandbox.Spec, changes ...func(*sandbox.Spec)) *sandbox.Spec {
	next := *spec
	next.ConfigHash = "hash-2"
	for _, change := range changes {
		change(&next)
	}
	return &next
}

var managerCases = []testCase{
	{"ensure makes it once and then finds it", func(s *stage) {
		spec, m := s.spec(), s.manager()
		first := s.ensure(m, spec)
		second := s.ensure(m, spec)
		if !first.Created || second.Created || first.Machine != second.Machine {
			s.t.Errorf("created %v then %v, same wire %v", first.Created, second.Created, first.Machine == second.Machine)
		}
		other := s.ensure(s.manager(), spec)
		if other.Created {
			s.t.Error("another process made it again")
		}
		s.sh(other.Machine, "true")
	}},
	{"a stopped one is started", func(s *stage) {
		spec := s.spec()
		s.ensure(s.manager(), spec).Release()
		inst, err := s.runtime.Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Stop(s.t.Context(), time.Second); err != nil {
			s.t.Fatal(err)
		}
		h := s.ensure(s.manager(), spec)
		if h.Created || s.id(spec.Name) != inst.Seen().ID {
			s.t.Error("it was made anew")
		}
		s.sh(h.Machine, "true")
	}},
	{"one that ended under a live wire is started", func(s *stage) {
		spec, m := s.spec(), s.manager()
		s.ensure(m, spec).Release()
		inst, err := s.runtime.Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Kill(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.sh(s.ensure(m, spec).Machine, "true")
	}},
	{"one that vanished under a live wire is made again", func(s *stage) {
		spec, m := s.spec(), s.manager()
		s.ensure(m, spec).Release()
		inst, err := s.runtime.Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Remove(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		h := s.ensure(m, spec)
		if !h.Created {
			s.t.Error("not made again")
		}
		s.sh(h.Machine, "true")
	}},
	{"changed and cold is recreated", func(s *stage) {
		c := newClock()
		spec := s.spec()
		s.ensure(s.manager(at(c)), spec).Release()
		before := s.id(spec.Name)
		c.pass(sandbox.HotWindow)
		h := s.ensure(s.manager(at(c)), again(spec))
		if !h.Created || s.id(spec.Name) == before {
			s.t.Error("the old one is still in use")
		}
	}},
	{"changed and hot is kept, with the command that applies the change", func(s *stage) {
		spec := s.spec()
		s.ensure(s.manager(), spec).Release()
		h := s.ensure(s.manager(), again(spec))
		if h.Created || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], "atoll sandbox recreate --agent main") {
			s.t.Errorf("created %v, notices %q", h.Created, h.Notices)
		}
	}},
	{"changed and cold but in use is kept", func(s *stage) {
		c := newClock()
		spec := s.spec()
		s.ensure(s.manager(at(c)), spec) // not released
		c.pass(time.Hour)
		if h := s.ensure(s.manager(at(c)), again(spec)); h.Created {
			s.t.Error("recreated under its user")
		}
	}},
	{"hot with other mounts is refused", func(s *stage) {
		spec := s.spec()
		s.ensure(s.manager(), spec).Release()
		_, err := s.manager().Ensure(s.t.Context(), again(spec, func(n *sandbox.Spec) { n.MountsHash = "mounts-2" }))
		wantProvision(s, err, sandbox.ErrBusy)
	}},
	{"twenty at once make one", func(s *stage) {
		spec := s.spec()
		managers := make([]*sandbox.Manager, 20)
		for i := range managers {
			managers[i] = s.manager()
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for _, m := range managers {
			wg.Go(func() {
				h, err := m.Ensure(s.t.Context(), spec)
				if err != nil {
					s.t.Error(err)
					return
				}
				defer h.Release()
				mu.Lock()
				defer mu.Unlock()
				if h.Created {
					made++
				}
			})
		}
		wg.Wait()
		if list, err := s.runtime.List(s.t.Context()); made != 1 || len(list) != 1 {
			s.t.Errorf("made %d times, %d listed, %v", made, len(list), err)
		}
	}},
	{"the set-up command runs once", func(s *stage) {
		spec := s.spec()
		spec.SetupCommand = `echo "$LANG" >>` + spec.Workdir + "/setup"
		s.ensure(s.manager(), spec).Release()
		h := s.ensure(s.manager(), spec)
		if got := s.sh(h.Machine, "cat "+spec.Workdir+"/setup"); got != "C.UTF-8" {
			s.t.Errorf("set-up wrote %q", got)
		}
	}},
	{"a set-up that fails leaves nothing", func(s *stage) {
		spec := s.spec(func(spec *sandbox.Spec) { spec.SetupCommand = "echo the reason; exit 3" })
		_, err := s.manager().Ensure(s.t.Context(), spec)
		wantProvision(s, err, nil)
		if !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(), "3") {
			s.t.Errorf("%v does not say what happened", err)
		}
		s.wantGone(spec.Name)
		s.wantNoRow(spec.Name)
	}},
	{"a set-up that hangs is ended and leaves nothing", func(s *stage) {
		spec := s.spec(func(spec *sandbox.Spec) { spec.SetupCommand = "trap '' TERM; sleep 1000" })
		m := s.manager(func(o *sandbox.Options) { o.SetupTimeout = 300 * time.Millisecond })
		_, err := m.Ensure(s.t.Context(), spec)
		wantProvision(s, err, nil)
		s.wantGone(spec.Name)
		s.wantNoRow(spec.Name)
	}},
	{"a cancelled ensure leaves nothing", func(s *stage) {
		spec := s.spec(func(spec *sandbox.Spec) { spec.SetupCommand = "sleep 1000" })
		ctx, cancel := context.WithCancel(s.t.Context())
		m := s.manager(func(o *sandbox.Options) {
			o.Checkpoint = func(step string) {
				if step == "before setup" {
					time.AfterFunc(100*time.Millisecond, cancel)
				}
			}
		})
		if _, err := m.Ensure(ctx, spec); err == nil {
			s.t.Error("no error")
		}
		s.wantGone(spec.Name)
		s.wantNoRow(spec.Name)
	}},
	{"a missing image is a provisioning error and leaves nothing", func(s *stage) {
		spec := s.spec(func(spec *sandbox.Spec) { spec.Image = "atoll-suite-no-such-image:1" })
		_, err := s.manager().Ensure(s.t.Context(), spec)
		wantProvision(s, err, sandbox.ErrNoImage)
		s.wantNoRow(spec.Name)
	}},
	{"a lost row is adopted", func(s *stage) {
		spec, m := s.spec(), s.manager()
		s.ensure(m, spec).Release()
		before := s.id(spec.Name)
		if err := m.Registry.Delete(s.t.Context(), spec.Name); err != nil {
			s.t.Fatal(err)
		}
		m.Close()
		if h := s.ensure(s.manager(), spec); h.Created || s.id(spec.Name) != before {
			s.t.Error("made anew")
		}
	}},
	{"commands of two users run side by side", func(s *stage) {
		spec := s.spec()
		a, b := s.ensure(s.manager(), spec), s.ensure(s.manager(), spec)
		var wg sync.WaitGroup
		for range 10 {
			for _, h := range []*sandbox.Handle{a, b} {
				wg.Go(func() {
					if res, err := h.Machine.Exec(s.t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", "exit 0"}}); err != nil || res.ExitCode != 0 {
						s.t.Error(res, err)
					}
				})
			}
		}
		wg.Wait()
	}},
}

// wantProvision checks that err is the one typed error, of that kind.
func wantProvision(s *stage, err, kind error) {
	s.t.Helper()
	if _, ok := errors.AsType[*sandbox.ProvisionError](err); !ok {
		s.t.Fatalf("got %v, want a *ProvisionError", err)
	}
	if kind != nil && !errors.Is(err, kind) {
		s.t.Errorf("got %v, want it to be %q", err, kind)
	}
}

func (s *stage) wantNoRow(name string) {
	s.t.Helper()
	if e, err := s.manager().Registry.Get(s.t.Context(), name); !errors.Is(err, sandbox.ErrNotFound) {
		s.t.Errorf("registry still has %+v, %v", e, err)
	}
}
