package proxy

import (
	"context"
	"time"
)

// idlePoll is how often WaitIdle checks.
const idlePoll = 5 * time.Millisecond

// WaitIdle waits until no request of a run is under way, so that its usage is
// settled. It is called when the run's callers have ended.
func (s *Server) WaitIdle(ctx context.Context, run string) error {
	poll := time.NewTicker(idlePoll)
	defer poll.Stop()
	for s.isBusy(run) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
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
