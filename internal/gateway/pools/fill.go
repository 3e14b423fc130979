package pools

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// run looks after the pools until the context ends.
func (s *Service) run(ctx context.Context) {
	defer close(s.ended)
	var looked time.Time
	for ctx.Err() == nil {
		full := s.takeDue() || time.Since(looked) >= lookInterval
		if full {
			looked = time.Now()
		}
		if err := s.look(ctx, full); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "pools not looked after", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(interval):
		}
	}
}

func (s *Service) takeDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.due
	s.due = false
	return due
}

// look removes what should not wait and makes what is missing. A full look asks the
// machinery which sandboxes run, and the configuration for their shapes.
func (s *Service) look(ctx context.Context, full bool) error {
	rows, err := s.rows(ctx, full)
	if err != nil {
		return err
	}
	if full {
		s.planAll(ctx)
	}
	fit, unfit := s.sort(rows)
	if err := s.removeAll(ctx, unfit); err != nil {
		s.Logger.WarnContext(ctx, "sandboxes of pools not removed yet", "error", err)
	}
	s.keepAll(ctx, full)
	s.fillAll(ctx, fit)
	return nil
}

// rows returns the rows of pools. A full look leaves out those whose sandbox does not run
// or has an image that its reference does not name any more, after it has removed them.
func (s *Service) rows(ctx context.Context, full bool) ([]*sandbox.Entry, error) {
	if !full {
		return s.In.Registry.Pooled(ctx)
	}
	all, err := s.In.Manager.Pooled(ctx)
	if err != nil {
		return nil, err
	}
	images := s.images(ctx, all)
	var alive, ended []*sandbox.Entry
	for i := range all {
		if st := &all[i]; st.Phase == sandbox.PhaseReady && !st.Unknown && (!st.Running || isOutdated(st, images[imageOf(st)])) {
			ended = append(ended, st.Entry)
		} else {
			alive = append(alive, st.Entry)
		}
	}
	return alive, s.removeAll(ctx, ended)
}

// imageRef is a reference of an image, as a backend understands it.
type imageRef struct{ backend, ref string }

func imageOf(st *sandbox.Status) imageRef { return imageRef{st.Backend, st.Image} }

// images returns the ids of the images that the references of sandboxes name now.
func (s *Service) images(ctx context.Context, all []sandbox.Status) map[imageRef]string {
	ids := map[imageRef]string{}
	for i := range all {
		image := imageOf(&all[i])
		if _, asked := ids[image]; !asked {
			ids[image] = s.In.Manager.CurrentImage(ctx, image.backend, image.ref)
		}
	}
	return ids
}

// isOutdated reports whether a sandbox was made from another image than the current one.
func isOutdated(st *sandbox.Status, current string) bool {
	return current != "" && st.ImageID != "" && st.ImageID != current
}

// planAll finds out what the sandboxes of each pool are made with now.
func (s *Service) planAll(ctx context.Context) {
	for _, agent := range s.agents() {
		p, why, err := s.In.PlanPool(ctx, agent)
		s.mu.Lock()
		known := s.pools[agent]
		switch known.unplanned = err != nil; {
		case err != nil:
			s.noteFailure(ctx, agent, err)
		case why != "":
			if known.why != why {
				s.Logger.WarnContext(ctx, "an agent can have no pool", "agent", agent, "reason", why)
			}
			known.why, known.shape, known.spec = why, "", nil
		default:
			known.shape, known.backend, known.spec = sandbox.Shape(p.Spec), p.Spec.Backend, p.Spec
			if known.failures == 0 {
				known.why = ""
			}
		}
		s.mu.Unlock()
	}
}

// agents returns the agents whose pools are to have sandboxes.
func (s *Service) agents() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for agent, p := range s.pools {
		if p.size > 0 {
			list = append(list, agent)
		}
	}
	slices.Sort(list)
	return list
}

// sort tells the rows that fit their pools, counted by agent, from those that are to go:
// of another shape, too many, or of a pool that another program keeps.
func (s *Service) sort(rows []*sandbox.Entry) (fit map[string]int, unfit []*sandbox.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fit = map[string]int{}
	for _, p := range s.pools {
		if !p.kept {
			p.ready = 0
		}
	}
	for _, e := range rows {
		p := s.poolOf(e.AgentID)
		switch {
		case e.Phase != sandbox.PhaseReady: // being made, claimed or removed, or left to the repair after a crash
		case p.unplanned && p.size > 0: // it may be what is asked for
		case p.kept || e.ConfigHash != p.shape || fit[e.AgentID] >= p.size:
			unfit = append(unfit, e)
		default:
			fit[e.AgentID]++
			p.ready++
		}
	}
	return fit, unfit
}

// removeAll removes sandboxes of pools, several at once. One that is being claimed is left
// to its claim.
func (s *Service) removeAll(ctx context.Context, rows []*sandbox.Entry) error {
	var group errgroup.Group
	group.SetLimit(makeAtOnce)
	problems := make([]error, len(rows))
	for i, e := range rows {
		group.Go(func() error {
			if err := s.In.RemovePooled(ctx, e); !errors.Is(err, sandbox.ErrBusy) {
				problems[i] = err
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(problems...)
}

// fillAll makes what is missing in every pool, several at once.
func (s *Service) fillAll(ctx context.Context, fit map[string]int) {
	var group errgroup.Group
	group.SetLimit(makeAtOnce)
	for _, agent := range s.agents() {
		for range s.missing(agent, fit[agent]) {
			group.Go(func() error {
				if s.wants(agent) && s.pace(ctx) {
					s.note(ctx, agent, s.make(ctx, agent))
				}
				return nil
			})
		}
	}
	_ = group.Wait()
}

// missing returns how many sandboxes the pool of an agent lacks.
func (s *Service) missing(agent string, fit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[agent]
	if p.shape == "" || p.kept || time.Now().Before(p.retry) {
		return 0
	}
	return max(0, p.size-fit)
}

// wants reports whether the pool of an agent lacks a sandbox and no back-off is under way.
func (s *Service) wants(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[agent]
	return p.ready < p.size && !time.Now().Before(p.retry)
}

// pace waits until another sandbox may be made; false if the context ends before.
func (s *Service) pace(ctx context.Context) bool {
	s.mu.Lock()
	now := time.Now()
	if s.start.Before(now) {
		s.start = now
	}
	wait := s.start.Sub(now)
	s.start = s.start.Add(makeInterval)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// make makes one sandbox for the pool of an agent.
func (s *Service) make(ctx context.Context, agent string) error {
	p, why, err := s.In.PlanPool(ctx, agent)
	switch {
	case err != nil:
		return err
	case why != "":
		return errors.New(why)
	}
	return s.In.MakePooled(ctx, p)
}

// note counts a sandbox that was made, or puts the next try off. Only the first failure in
// a row is logged.
func (s *Service) note(ctx context.Context, agent string, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[agent]
	if err == nil {
		if p.failures > 0 {
			s.Logger.InfoContext(ctx, "a pool can be filled again", "agent", agent, "failures", p.failures)
		}
		p.ready, p.failures, p.why = p.ready+1, 0, ""
		return
	}
	s.noteFailure(ctx, agent, err)
}

// noteFailure puts the next try for an agent off. The mutex is held.
func (s *Service) noteFailure(ctx context.Context, agent string, err error) {
	p := s.pools[agent]
	if s.Counted != nil {
		s.Counted.failures.With(agent, reason(err)).Inc()
	}
	if now := time.Now(); !now.Before(p.retry) { // those that were under way count once
		p.failures++
		p.retry = now.Add(min(longestPause, firstPause<<min(p.failures-1, 10)))
	}
	if p.why = err.Error(); p.failures == 1 {
		s.Logger.WarnContext(ctx, "a pool cannot be filled; it is tried again", "agent", agent, "error", err, "hint", errhint.Of(err))
	}
}

// reason returns the kind of a failure, out of a few.
func reason(err error) string {
	switch {
	case errors.Is(err, provide.ErrDiskFull):
		return "disk_full"
	case errors.Is(err, sandbox.ErrNoImage):
		return "no_image"
	case errors.Is(err, sandbox.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, sandbox.ErrDenied):
		return "denied"
	}
	return "other"
}
