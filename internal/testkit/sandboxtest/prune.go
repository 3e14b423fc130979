package sandboxtest

import (
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
)

func limits(idle, age time.Duration) func(string) sandbox.PruneLimits {
	return func(string) sandbox.PruneLimits { return sandbox.PruneLimits{Idle: idle, Age: age} }
}

func (s *stage) prune(m *sandbox.Manager, l func(string) sandbox.PruneLimits) []sandbox.Removal {
	s.t.Helper()
	done, err := m.Prune(s.t.Context(), l)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range done {
		if r.Err != nil {
			s.t.Errorf("%s: %v", r.Entry.ContainerName, r.Err)
		}
	}
	return done
}

var pruneCases = []testCase{
	{"the idle and the old go, the others stay", func(s *stage) {
		c := newClock()
		m := s.manager(at(c))
		old, idle, fresh := s.spec(), s.spec(), s.spec()
		s.ensure(m, old).Release()
		c.pass(20 * time.Hour)
		s.ensure(m, idle).Release()
		c.pass(5 * time.Hour)
		s.ensure(m, old).Release() // old, but just used
		s.ensure(m, fresh).Release()
		if done := s.prune(m, limits(4*time.Hour, 24*time.Hour)); len(done) != 2 {
			s.t.Errorf("removed %d, want 2", len(done))
		}
		s.wantGone(old.Name)
		s.wantGone(idle.Name)
		if s.id(fresh.Name) == "" {
			s.t.Error("the fresh one is gone")
		}
	}},
	{"zero switches a limit off", func(s *stage) {
		c := newClock()
		m := s.manager(at(c))
		spec := s.spec()
		s.ensure(m, spec).Release()
		c.pass(10000 * time.Hour)
		if done := s.prune(m, limits(0, 0)); len(done) != 0 {
			s.t.Errorf("removed %d", len(done))
		}
	}},
	{"each agent's own limits count", func(s *stage) {
		c := newClock()
		m := s.manager(at(c))
		short, long := s.spec(), s.spec(func(spec *sandbox.Spec) { spec.AgentID = "patient" })
		s.ensure(m, short).Release()
		s.ensure(m, long).Release()
		c.pass(2 * time.Hour)
		s.prune(m, func(agent string) sandbox.PruneLimits {
			return map[string]sandbox.PruneLimits{"main": {Idle: time.Hour}, "patient": {Idle: 3 * time.Hour}}[agent]
		})
		s.wantGone(short.Name)
		if s.id(long.Name) == "" {
			s.t.Error("the patient agent's sandbox is gone")
		}
	}},
	{"what is in use stays", func(s *stage) {
		c := newClock()
		spec := s.spec()
		h := s.ensure(s.manager(at(c)), spec)
		c.pass(100 * time.Hour)
		if done := s.prune(s.manager(at(c)), limits(time.Hour, time.Hour)); len(done) != 0 {
			s.t.Errorf("removed %d while in use", len(done))
		}
		s.sh(h.Machine, "true")
	}},
	{"it is done once in five minutes", func(s *stage) {
		c := newClock()
		m := s.manager(at(c))
		spec := s.spec()
		s.ensure(m, spec).Release()
		if _, err := m.PruneIfDue(s.t.Context(), limits(time.Hour, 0)); err != nil {
			s.t.Fatal(err)
		}
		c.pass(sandbox.DefaultPruneInterval - time.Second)
		strict := limits(time.Second, 0)
		if done, err := m.PruneIfDue(s.t.Context(), strict); len(done) != 0 || err != nil {
			s.t.Errorf("too early: %v, %v", done, err)
		}
		c.pass(time.Second)
		if done, err := m.PruneIfDue(s.t.Context(), strict); len(done) != 1 || err != nil {
			s.t.Errorf("when due: %v, %v", done, err)
		}
	}},
	{"a lost sandbox is adopted, one that may be half made is removed", func(s *stage) {
		m := s.manager()
		whole := s.spec()
		half := s.spec(func(spec *sandbox.Spec) { spec.SetupCommand = "true" })
		s.started(whole)
		s.started(half)
		s.prune(m, limits(0, 0))
		s.wantGone(half.Name)
		e, err := m.Registry.Get(s.t.Context(), whole.Name)
		if err != nil || e.ConfigHash != whole.ConfigHash || e.AgentID != "main" {
			s.t.Errorf("adopted as %+v, %v", e, err)
		}
	}},
	{"a row whose sandbox is gone goes", func(s *stage) {
		spec, m := s.spec(), s.manager()
		s.ensure(m, spec).Release()
		inst, err := s.runtime.Open(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Remove(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.prune(m, limits(0, 0))
		s.wantNoRow(spec.Name)
	}},
}
