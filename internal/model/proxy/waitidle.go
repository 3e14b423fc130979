package proxy

import (
	"context"
	"time"
)

// idlePoll is how often Quiet looks.
const idlePoll = 5 * time.Millisecond

// WaitIdle waits until no request of a run is under way: what it used is then
// settled. It is asked when the run's callers are gone, so it does not take long.
func (s *Server) WaitIdle(ctx context.Context, run string) error {
	look := time.NewTicker(idlePoll)
	defer look.Stop()
	for s.isBusy(run) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
	return nil
}

func (s *Server) isBusy(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject := range s.active {
		if subject.Run == run {
			return true
		}
	}
	return false
}
