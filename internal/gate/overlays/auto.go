package overlays

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

const (
	byRule   = "sync.mode auto"
	lastTime = 5 * time.Minute // bounds what is applied when a sandbox is released
	answers  = 20              // of earlier questions that are looked at
)

// Follow applies what passes while a sandbox is in use, in the mode auto. The
// function that it returns applies a last time and ends it.
func (s *Service) Follow(p *plan.Plan) (end func()) {
	rules := p.Agent.Sandbox.Sync
	if rules.Mode != config.SyncAuto || len(p.Overlays()) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.repeat(ctx, p, time.Duration(rules.Interval)*time.Second)
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), lastTime)
		defer cancel()
		s.applyPassing(ctx, p, true)
	})
}

func (s *Service) repeat(ctx context.Context, p *plan.Plan, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.applyPassing(ctx, p, false)
		}
	}
}

// applyPassing applies what passes in all overlays of a plan. What fails is logged,
// and tried again the next time.
func (s *Service) applyPassing(ctx context.Context, p *plan.Plan, last bool) {
	trees, err := s.OverlaysOf(p)
	found := &subject{Service: s, plan: p, account: p.Spec.Account, trees: trees}
	for _, t := range trees {
		if isGit(p, t) {
			continue
		}
		if err := found.applyTree(ctx, t, last); err != nil && ctx.Err() == nil {
			s.Logger.Warn("changes of a sandbox could not be applied", "directory", t.Base, "error", err)
		}
	}
	if err != nil {
		s.Logger.Warn("changes of a sandbox could not be read", "error", err)
	}
}

func (s *subject) applyTree(ctx context.Context, t *overlay.Tree, last bool) error {
	g, err := s.open(ctx, t, nil) // files of the agent's commits are applied too
	if err != nil {
		return err
	}
	defer g.Close() //nolint:errcheck // what was decided is on disk
	set, applied, err := g.ApplyPassing(ctx, byRule, last)
	if err != nil {
		return err
	}
	g.tell(applied)
	return g.ask(ctx, set)
}

func (g *opened) tell(applied *gate.Applied) {
	if applied != nil {
		g.changed("approve", len(applied.Files))
	}
}

// ask asks a person about what needs one, and acts on the answer.
func (g *opened) ask(ctx context.Context, set *gate.Set) error {
	name := filepath.Join(g.slug(), filepath.Base(g.tree.Dir))
	request, err := set.Question(name, g.tree.Base, approval.Owner{Account: g.account, Agent: g.plan.Agent.ID, Session: g.plan.Session.Key})
	if request == nil || err != nil {
		return err
	}
	earlier, err := g.questions.List(ctx, approval.Filter{Kind: request.Kind, Subject: name, Most: answers})
	if err != nil {
		return err
	}
	for i := range earlier {
		if q := &earlier[i]; q.State == approval.Answered && q.Hash == approval.HashOf(request.Evidence) {
			applied, err := g.ActOn(ctx, q, request)
			g.tell(applied)
			return err
		}
	}
	_, err = g.questions.Ask(ctx, request)
	return err
}
