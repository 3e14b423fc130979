// Package pools keeps sandboxes ready before anybody asks for them, as many for each agent
// as the configuration or an operator says. It makes them in the background, replaces those
// that have another shape by now or have ended, and removes them when the gateway ends. Who
// takes them is package provide.
package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config/poolkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The pace of the work, and how long the removal of all may take when the gateway ends.
const (
	interval     = 2 * time.Second        // between two looks at the rows
	lookInterval = 30 * time.Second       // between two looks at the machinery and the configuration
	makeInterval = 100 * time.Millisecond // between the starts of two sandboxes
	makeAtOnce   = 4
	firstPause   = time.Second // after a failure; it doubles with each
	longestPause = 5 * time.Minute
	drainTimeout = 30 * time.Second
)

// The errors of Resize.
var (
	ErrNoAgent = errors.New("there is no such agent")
	ErrSize    = errors.New("a pool cannot have that size")
)

// Options are what a Service works with.
type Options struct {
	In      *provide.Installation
	Sizes   map[string]int // of the configuration, by agent
	Logger  *slog.Logger
	Audit   func(*audit.PoolEvent) error
	Counted *Counters
}

// Service keeps the pools of an installation. One process at a time has one.
type Service struct {
	Options
	mu    sync.Mutex
	pools map[string]*pool // by agent
	start time.Time        // when the next sandbox may be made
	due   bool             // a look at the machinery was asked for
	wake  chan struct{}
	end   context.CancelFunc
	ended chan struct{}
}

// pool is what is known of the pool of one agent. The service's mutex guards it.
type pool struct {
	configured, size int
	shape, backend   string
	ready, making    int
	spec             *sandbox.Spec // of a sandbox of the pool; nil if it is not known
	kept             bool          // another program keeps it filled
	why              string        // there can be none, or the last failure
	unplanned        bool          // what its sandboxes are made with could not be found out
	failures         int           // in a row
	retry            time.Time
	claimed, missed  int64
}

// Open begins to keep the pools filled. Close it before the installation.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := &Service{Options: o, pools: map[string]*pool{}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := s.setSizes(ctx, o.Sizes); err != nil {
		return nil, err
	}
	o.In.Claimed = s.noteClaim
	if o.Counted != nil {
		o.Counted.show(s)
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	go s.run(ctx)
	return s, nil
}

// Close ends the filling and removes what waits.
func (s *Service) Close() {
	s.end()
	<-s.ended
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	rows, err := s.In.Registry.Pooled(ctx)
	if err == nil {
		err = s.removeAll(ctx, rows)
	}
	err = errors.Join(err, s.In.DropKeptPools(ctx))
	if err != nil {
		s.Logger.Warn("sandboxes of pools not removed; `atoll sandbox prune` does it", "error", err)
	}
}

// SetSizes takes over the sizes of a configuration that was read again. A size that an
// operator set stays while the configured one is the same.
func (s *Service) SetSizes(ctx context.Context, sizes map[string]int) error {
	defer s.hurry(true)
	return s.setSizes(ctx, sizes)
}

func (s *Service) setSizes(ctx context.Context, sizes map[string]int) error {
	kept, err := s.overrides(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for agent, p := range s.pools {
		p.configured, p.size = sizes[agent], sizes[agent]
	}
	for agent, size := range sizes {
		p := s.poolOf(agent)
		p.configured, p.size = size, size
	}
	for agent, o := range kept {
		if o.configured == sizes[agent] {
			s.poolOf(agent).size = o.size
		}
	}
	return nil
}

// poolOf returns the pool of an agent. The mutex is held.
func (s *Service) poolOf(agent string) *pool {
	if s.pools[agent] == nil {
		s.pools[agent] = &pool{}
	}
	return s.pools[agent]
}

// hurry has the next look happen now, also at the machinery if it is due.
func (s *Service) hurry(due bool) {
	s.mu.Lock()
	s.due = s.due || due
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// List returns the pools that are to have sandboxes, or have some, by agent.
func (s *Service) List(ctx context.Context) ([]api.Pool, error) {
	counts, err := s.count(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for agent := range counts {
		s.poolOf(agent)
	}
	list := []api.Pool{}
	for _, agent := range slices.Sorted(maps.Keys(s.pools)) {
		p, n := s.pools[agent], counts[agent]
		if p.size+p.configured+n.all == 0 {
			continue
		}
		list = append(list, api.Pool{
			Agent: agent, Size: p.size, Configured: p.configured, Ready: p.ready, Making: n.making + p.making, Backend: p.backend,
			Claimed: p.claimed, Missed: p.missed, Failures: p.failures, Problem: p.why,
		})
	}
	return list, nil
}

// counted is how many rows the pool of an agent has.
type counted struct{ all, making int }

func (s *Service) count(ctx context.Context) (map[string]counted, error) {
	rows, err := s.In.Registry.Pooled(ctx)
	counts := map[string]counted{}
	for _, e := range rows {
		n := counts[e.AgentID]
		n.all++
		if e.Phase == sandbox.PhaseCreating {
			n.making++
		}
		counts[e.AgentID] = n
	}
	return counts, err
}

// Resize sets how many sandboxes wait for an agent, until the configured size changes.
func (s *Service) Resize(ctx context.Context, agent string, size int, by string) error {
	if _, err := s.In.Config.Resolve(agent); err != nil {
		return errhint.With(fmt.Errorf("agent %q: %w", agent, ErrNoAgent), "`atoll config show` has the agents")
	}
	if err := s.checkSize(agent, size); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.poolOf(agent)
	configured := p.configured
	s.mu.Unlock()
	if err := s.keepOverride(ctx, agent, override{size: size, configured: configured}); err != nil {
		return err
	}
	s.mu.Lock()
	p.size, p.failures, p.retry = size, 0, time.Time{}
	s.mu.Unlock()
	s.hurry(true)
	return s.Audit(&audit.PoolEvent{Time: time.Now(), Subject: audit.Subject{Agent: agent}, Event: audit.PoolResized, Size: size, By: by})
}

// checkSize refuses a size that is too large by itself or with the other pools.
func (s *Service) checkSize(agent string, size int) error {
	if size < 0 || size > poolkeys.MaxSize {
		return errhint.With(fmt.Errorf("%d: %w", size, ErrSize), fmt.Sprintf("choose one from 0 to %d", poolkeys.MaxSize))
	}
	sizes := map[string]int{agent: size}
	s.mu.Lock()
	for other, p := range s.pools {
		if other != agent {
			sizes[other] = p.size
		}
	}
	s.mu.Unlock()
	if message, hint := poolkeys.TooMany(sizes); message != "" {
		return errhint.With(fmt.Errorf("%s: %w", message, ErrSize), hint)
	}
	return nil
}

// noteClaim counts a new sandbox that a pool could provide, as a claim or a miss.
func (s *Service) noteClaim(spec *sandbox.Spec, member string) {
	s.mu.Lock()
	p := s.pools[spec.AgentID]
	known := p != nil && (p.size > 0 || member != "")
	if known && member != "" {
		p.claimed++
		p.ready = max(0, p.ready-1)
	} else if known {
		p.missed++
	}
	s.mu.Unlock()
	if !known {
		return
	}
	s.hurry(false)
	if member == "" {
		return
	}
	who := audit.Subject{Account: spec.Account, Agent: spec.AgentID, Session: spec.ScopeKey}
	if err := s.Audit(&audit.PoolEvent{Time: time.Now(), Subject: who, Event: audit.PoolClaimed, Sandbox: spec.Name, Member: member}); err != nil {
		s.Logger.Warn("a claim was not recorded", "sandbox", spec.Name, "error", err)
	}
}
