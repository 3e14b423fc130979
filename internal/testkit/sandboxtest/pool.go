package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// shaped is a sandbox that may come out of a pool: its directory is not there yet.
func (s *stage) shaped(changes ...func(*sandbox.Spec)) *sandbox.Spec {
	s.t.Helper()
	spec := s.spec(changes...)
	spec.Hostname = sandbox.PoolHostname
	if err := os.Remove(spec.Mounts[0].Source); err != nil {
		s.t.Fatal(err)
	}
	return spec
}

// alike is another sandbox of the shape of spec.
func (s *stage) alike(spec *sandbox.Spec) *sandbox.Spec {
	n := s.names.Add(1)
	next := *spec
	next.Name, next.ScopeKey = fmt.Sprintf("atoll-suite-%s-%d", s.tag(), n), fmt.Sprintf("agent:main:%d", n)
	next.Mounts = append([]sandbox.Mount(nil), spec.Mounts...)
	next.Mounts[0].Source = filepath.Join(s.state, fmt.Sprintf("workspace-%d", n))
	return &next
}

// member is the spec of a sandbox for the pool of spec's agent.
func (s *stage) member(spec *sandbox.Spec) *sandbox.Spec {
	s.t.Helper()
	n := s.names.Add(1)
	dir := filepath.Join(s.state, fmt.Sprintf("pool-%d", n))
	mustMkdir(s.t, dir)
	return sandbox.PoolSpec(spec, fmt.Sprintf("atoll-suite-%s-pool-%d", s.tag(), n), dir)
}

// pooled makes a sandbox for the pool of spec's agent, and returns its name.
func (s *stage) pooled(m *sandbox.Manager, spec *sandbox.Spec) string {
	s.t.Helper()
	member := s.member(spec)
	if err := m.MakePooled(s.t.Context(), member); err != nil {
		s.t.Fatalf("make for a pool: %v", err)
	}
	return member.Name
}

// take takes a sandbox for spec out of the pool, with its directory; nil if there is none.
func take(m *sandbox.Manager, s *stage, spec *sandbox.Spec) (*sandbox.Claim, error) {
	claim, err := m.Reserve(s.t.Context(), spec)
	if claim == nil || err != nil {
		return nil, err
	}
	spec.Claim = claim
	return claim, os.Rename(claim.Workspace(), spec.Mounts[0].Source)
}

// claimed makes the sandbox of spec out of one of the pool.
func (s *stage) claimed(m *sandbox.Manager, spec *sandbox.Spec) *sandbox.Handle {
	s.t.Helper()
	claim, err := take(m, s, spec)
	if claim == nil || err != nil {
		s.t.Fatalf("no claim: %v", err)
	}
	defer claim.Release(s.t.Context())
	return s.ensure(m, spec)
}

// waiting counts the sandboxes that wait in pools.
func (s *stage) waiting(m *sandbox.Manager) (n int) {
	s.t.Helper()
	all, err := m.Pooled(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range all {
		if one.Phase == sandbox.PhaseReady && one.Running {
			n++
		}
	}
	return n
}

var poolCases = append([]testCase{
	{"a claim gives one that is ready its name", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		made := s.id(s.pooled(m, spec))
		if list, n, err := m.List(s.t.Context(), 0); n != 0 || len(list) != 0 || err != nil {
			s.t.Errorf("%d are listed, %v", n, err)
		}
		h := s.claimed(m, spec)
		entry, err := m.Registry.Get(s.t.Context(), spec.Name)
		if err != nil || s.id(entry.RuntimeName()) != made || entry.Kind != sandbox.KindSandbox || entry.SessionKey != spec.ScopeKey {
			s.t.Errorf("row %+v, %v", entry, err)
		}
		if s.waiting(m) != 0 {
			s.t.Error("it is still in the pool")
		}
		s.sh(h.Machine, "true")
		if s.Workdir != "" && !s.Copies {
			s.sh(h.Machine, "echo inside >"+spec.Workdir+"/from-inside")
			if text, err := os.ReadFile(s.workspace(spec, "from-inside")); string(text) != "inside\n" {
				s.t.Errorf("%q, %v", text, err)
			}
		}
		other := s.ensure(s.manager(), spec) // as another process finds it
		if other.Created {
			s.t.Error("another process made it again")
		}
		s.sh(other.Machine, "true")
	}},
	{"what the workspace holds when it is claimed is seen inside", func(s *stage) {
		if s.Workdir == "" {
			return // nothing is mounted
		}
		m, spec := s.manager(), s.shaped()
		s.pooled(m, spec)
		claim, err := take(m, s, spec)
		if claim == nil || err != nil {
			s.t.Fatal(err)
		}
		defer claim.Release(s.t.Context())
		if err := os.WriteFile(s.workspace(spec, "AGENTS.md"), []byte("begin"), 0o644); err != nil {
			s.t.Fatal(err)
		}
		if got := s.sh(s.ensure(m, spec).Machine, "cat "+spec.Workdir+"/AGENTS.md"); got != "begin" {
			s.t.Errorf("inside it is %q", got)
		}
	}},
	{"a guest takes one identity", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		s.pooled(m, spec)
		h := s.claimed(m, spec)
		if err := h.Machine.Identify(s.t.Context(), "another-claim", "atoll-another"); !errors.Is(err, machine.ErrTaken) {
			s.t.Errorf("a second identity: %v, want ErrTaken", err)
		}
		s.sh(h.Machine, "true")
	}},
	{"many claims of two processes get one each", func(s *stage) { s.raceClaims(4, 12) }},
	{"one of another shape, or of another agent, is not handed out", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		s.pooled(m, spec)
		others := []func(*sandbox.Spec){
			func(o *sandbox.Spec) { o.AgentID = "other" },
			func(o *sandbox.Spec) { o.Tmpfs = []sandbox.Tmpfs{{Target: "/scratch"}} },
			func(o *sandbox.Spec) { o.Mounts[0].ReadOnly = true },
		}
		for n, change := range others {
			other := s.alike(spec)
			change(other)
			if claim, err := m.Reserve(s.t.Context(), other); claim != nil || err != nil {
				s.t.Errorf("change %d: a claim %v, %v", n, claim, err)
			}
		}
		if s.waiting(m) != 1 {
			s.t.Error("it left the pool")
		}
	}},
	{"one that ended is not used, another is made", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		name := s.pooled(m, spec)
		inst, err := s.runtime.Open(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Kill(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if s.waiting(m) != 0 {
			s.t.Error("it counts as ready")
		}
		h := s.claimed(m, spec)
		s.sh(h.Machine, "true")
		s.wantGone(name)
		s.wantNoRow(name)
	}},
	{"a claim that is not used removes its sandbox", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		name := s.pooled(m, spec)
		claim, err := m.Reserve(s.t.Context(), spec)
		if claim == nil || err != nil {
			s.t.Fatal(err)
		}
		claim.Release(s.t.Context())
		s.wantGone(name)
		s.wantNoRow(name)
		if again, err := m.Reserve(s.t.Context(), spec); again != nil || err != nil {
			s.t.Errorf("claimed again: %v, %v", again, err)
		}
	}},
	{"one that was claimed and stopped works again, with its files", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		s.pooled(m, spec)
		h := s.claimed(m, spec)
		s.sh(h.Machine, "echo kept >"+spec.Workdir+"/kept")
		h.Release()
		m.Close()
		entry, err := s.manager().Registry.Get(s.t.Context(), spec.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		inst, err := s.runtime.Open(s.t.Context(), entry.RuntimeName())
		if err != nil {
			s.t.Fatal(err)
		}
		if err := inst.Stop(s.t.Context(), time.Second); err != nil {
			s.t.Fatal(err)
		}
		spec.Claim = nil
		h = s.ensure(s.manager(), spec)
		if got := s.sh(h.Machine, "cat "+spec.Workdir+"/kept"); got != "kept" {
			s.t.Errorf("its file is %q", got)
		}
	}},
	{"prune keeps what waits, and removes what has no row", func(s *stage) {
		m, spec := s.manager(), s.shaped()
		kept, lost := s.pooled(m, spec), s.pooled(m, spec)
		if err := m.Registry.Delete(s.t.Context(), lost); err != nil {
			s.t.Fatal(err)
		}
		s.prune(m, limits(time.Nanosecond, time.Nanosecond))
		s.wantGone(lost)
		if s.id(kept) == "" || s.waiting(m) != 1 {
			s.t.Error("it does not wait any more")
		}
	}},
}, buildPoolCrashCases()...)

// retagCases are those of runtimes whose image references can come to mean other images.
func retagCases(s Subject) []testCase {
	if s.Retag == nil {
		return nil
	}
	return []testCase{{"one whose image is another by now is not used, another is made", func(s *stage) {
		const ref = "atoll-suite-retagged:1"
		s.Retag(s.t, s.state, ref, false)
		m, spec := s.manager(), s.shaped(func(o *sandbox.Spec) { o.Image = ref })
		first := s.pooled(m, spec)
		s.sh(s.claimed(m, s.alike(spec)).Machine, "true")
		if s.id(first) == "" {
			s.t.Error("one whose image is the same was not used")
		}
		next := s.pooled(m, spec)
		s.Retag(s.t, s.state, ref, true)
		s.sh(s.claimed(m, s.alike(spec)).Machine, "true")
		s.wantGone(next)
		s.wantNoRow(next)
	}}}
}

// raceClaims has more claims than there are sandboxes, by two processes.
func (s *stage) raceClaims(members, claims int) {
	managers, base := []*sandbox.Manager{s.manager(), s.manager()}, s.shaped()
	for range members {
		s.pooled(managers[0], base)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken, missed := map[string]bool{}, 0
	for n := range claims {
		m, spec := managers[n%2], s.alike(base)
		wg.Go(func() {
			claim, err := take(m, s, spec)
			if err != nil {
				s.t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case claim == nil:
				missed++
				return
			case taken[claim.Name()]:
				s.t.Errorf("%s was claimed twice", claim.Name())
			}
			taken[claim.Name()] = true
			h, err := m.Ensure(s.t.Context(), spec)
			if err != nil {
				s.t.Error(err)
				return
			}
			claim.Release(s.t.Context())
			s.sh(h.Machine, "true")
			h.Release()
		})
	}
	wg.Wait()
	if len(taken) != members || missed != claims-members {
		s.t.Errorf("%d were claimed, %d missed", len(taken), missed)
	}
}

// The checkpoints that a claim passes.
var claimPoints = []string{"before reserve", "after reserve", "before claim", "after claim", "after machinery", "after identity", "after ready"}

func buildPoolCrashCases() (cases []testCase) {
	for _, at := range claimPoints {
		cases = append(cases, testCase{"killed in a claim " + at, func(s *stage) { s.killedInClaim(at) }})
	}
	for _, at := range []string{"after intent", "after create", "before ready"} {
		cases = append(cases, testCase{"killed in filling " + at, func(s *stage) { s.killedInFilling(at) }})
	}
	return cases
}

// killedInClaim has a process die in a claim: after a prune its sandbox either waits as
// before, is that of the name, or is gone, and the name is usable.
func (s *stage) killedInClaim(at string) {
	spec := s.shaped()
	member := s.pooled(s.manager(), spec)
	s.runVictim(&victim{State: s.state, Spec: spec, At: at, Claim: true})
	m := s.manager()
	s.prune(m, limits(0, 0))
	waits, named := s.waiting(m), s.hasRow(m, spec.Name)
	switch {
	case at == "before reserve" && (waits != 1 || named):
		s.t.Errorf("%d wait, the name has a row: %v", waits, named)
	case at == "after ready" && (waits != 0 || !named || s.id(member) == ""):
		s.t.Errorf("%d wait, the name has a row: %v", waits, named)
	case at != "before reserve" && at != "after ready" && (waits != 0 || named || s.id(member) != ""):
		s.t.Errorf("left behind: %d wait, the name has a row: %v, the sandbox is %q", waits, named, s.id(member))
	}
	mustMkdir(s.t, spec.Mounts[0].Source)
	s.sh(s.ensure(m, spec).Machine, "true")
}

// killedInFilling has a process die while it makes a sandbox for a pool.
func (s *stage) killedInFilling(at string) {
	member := s.member(s.shaped())
	s.runVictim(&victim{State: s.state, Spec: member, At: at})
	m := s.manager()
	s.prune(m, limits(0, 0))
	s.wantGone(member.Name)
	s.wantNoRow(member.Name)
}

func (s *stage) hasRow(m *sandbox.Manager, name string) bool {
	s.t.Helper()
	_, err := m.Registry.Get(s.t.Context(), name)
	if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		s.t.Fatal(err)
	}
	return err == nil
}
