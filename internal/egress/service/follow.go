package service

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// followEvery is how often the files of the configuration are looked at while egress is
// open.
const followEvery = 400 * time.Millisecond

// removed is where the mode of an agent comes from that is no longer configured.
const removed = "removed"

// follower keeps the rules of open egress as the configuration has them.
type follower struct {
	reading sync.Mutex // held while the configuration is read and put in force

	mu   sync.Mutex
	now  *provide.Settings // nil: those of the installation
	seen string            // the stamp of the files that were read last, also in vain
	open map[*Egress]bool
	stop context.CancelFunc // of the goroutine that looks; nil: there is none
}

// now returns the settings as they were read last.
func (s *Service) now() *provide.Settings {
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	if s.follower.now == nil {
		return s.Settings
	}
	return s.follower.now
}

// planNow returns a plan whose agent has the egress that is configured now, and adjusted if
// there is something to adjust. An agent that is no longer there has none.
func (s *Service) planNow(p *plan.Plan, adjust func(*config.Config, *config.Agent) error) *plan.Plan {
	now := s.now()
	if now == s.Settings || p.Agent == nil {
		return p
	}
	agent, next := *p.Agent, *p
	agent.Sandbox.Egress = config.Egress{Mode: config.EgressOff, Limits: agent.Sandbox.Egress.Limits, ModeAt: config.Origin{Source: removed}}
	resolved, err := now.Config.Resolve(agent.ID)
	if err == nil && adjust != nil {
		err = adjust(now.Config, resolved)
	}
	if err == nil {
		agent.Sandbox.Egress = resolved.Sandbox.Egress
	}
	next.Agent = &agent
	return &next
}

// follow has the rules of an egress kept as the configuration has them.
func (s *Service) follow(e *Egress) {
	f := &s.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[*Egress]bool{}
	}
	f.open[e] = true
	if f.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go s.look(ctx)
}

// unfollow undoes follow.
func (s *Service) unfollow(e *Egress) {
	f := &s.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, e)
	if len(f.open) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

func (s *Service) look(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Refresh(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Refresh reads the configuration again if its files were changed, and puts its rules in
// force for all egress that is open. A file with a mistake changes nothing, and neither
// does one that has lost or gained the trust of the person: who may write to the
// project must not choose by that which of two files counts.
func (s *Service) Refresh(ctx context.Context) {
	f := &s.follower
	f.reading.Lock()
	defer f.reading.Unlock()
	now := s.now()
	stamp := now.Stamp()
	if stamp == now.Stamped() || stamp == s.seen() {
		return
	}
	next, err := now.Reread()
	f.mu.Lock()
	f.seen = stamp
	f.mu.Unlock()
	switch {
	case err != nil:
		s.Logger.WarnContext(ctx, "the configuration was changed and cannot be read: the rules of egress stay", "error", err)
	case isTrusted(now) != isTrusted(next):
		s.Logger.WarnContext(ctx, "the trust in the project's file has changed: the rules of egress stay until the next command", "file", next.Project)
	default:
		s.replace(next)
	}
}

func (s *Service) seen() string {
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	return s.follower.seen
}

func isTrusted(s *provide.Settings) bool { return s.Project != nil && s.Project.Trusted }

// replace puts the rules of other settings in force.
func (s *Service) replace(next *provide.Settings) {
	f := &s.follower
	f.mu.Lock()
	f.now = next
	var open []*Egress
	for e := range f.open {
		open = append(open, e)
	}
	f.mu.Unlock()
	var changing sync.WaitGroup
	for _, e := range open {
		changing.Go(func() { e.change(s.planNow(e.plan, e.options.Adjust)) })
	}
	changing.Wait()
}
