package pools

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// keepAll has the program that keeps pools know what they are to have, and takes over how
// full they are. Between full looks it is asked only while one is not full.
func (s *Service) keepAll(ctx context.Context, full bool) {
	keeper, backend, err := s.In.PoolKeeper(ctx)
	if err != nil {
		s.Logger.WarnContext(ctx, "pools cannot be kept", "error", err)
	}
	if keeper == nil {
		return
	}
	agents, wanted, changed := s.kept(backend)
	if !full && !changed {
		return
	}
	counts, err := keeper.KeepPools(ctx, wanted)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, agent := range agents {
		if err != nil {
			s.noteFailure(ctx, agent, err)
			continue
		}
		p := s.pools[agent]
		p.ready, p.making, p.why, p.failures = counts[n].Ready, counts[n].Making, counts[n].Problem, 0
	}
}

// kept returns the pools of a backend on which another program keeps them, by agent, and
// whether one of them is not full.
func (s *Service) kept(backend string) (agents []string, wanted []sandbox.KeptPool, changed bool) {
	names := s.agents()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		if p.making = 0; p.kept && p.size == 0 {
			p.ready = 0
		}
		p.kept = false
	}
	for _, agent := range names {
		p := s.pools[agent]
		if p.spec == nil || p.backend != backend {
			continue
		}
		p.kept = true
		agents, wanted = append(agents, agent), append(wanted, sandbox.KeptPool{Spec: p.spec, Size: p.size})
		changed = changed || p.ready < p.size && !time.Now().Before(p.retry)
	}
	return agents, wanted, changed
}
