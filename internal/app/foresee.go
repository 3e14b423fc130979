package app

import (
	"context"
	"log/slog"
	"os"

	"github.com/atoll-run/atoll/internal/plan"
)

// foreseen is the sandbox of a session that nobody had before: what is planned
// for it, and the process that was begun.
type foreseen struct {
	session string
	plan    *plan.Plan
	drop    func() // ends the process, unless the sandbox has it by then
}

// OpenAlone is Open for a process that will provide the sandbox of one session
// of its own, named by Alone, first of all. The sandbox is planned, and its
// process begun, while the state directory is opened; where there is none yet,
// that comes first.
func (s *Settings) OpenAlone(ctx context.Context, logger *slog.Logger, who Who) (*App, error) {
	if _, err := os.Stat(s.Paths.AtollState); err != nil {
		return s.Open(ctx, logger)
	}
	begun := make(chan *foreseen, 1)
	go func() { begun <- s.foresee(ctx, who) }()
	a, err := s.Open(ctx, logger)
	f := <-begun
	if err != nil {
		f.end()
		return nil, err
	}
	a.foreseen.Store(f)
	return a, nil
}

// foresee does what Provide would, as far as that does not need the registry; nil
// where there is anything to be said about it, which Provide then does.
func (s *Settings) foresee(ctx context.Context, who Who) *foreseen {
	p, err := s.Plan(who)
	if err != nil || p.Refusal() != nil {
		return nil
	}
	choice := s.Backend(ctx, p, "")
	if choice.Effective != backendLinux || s.fit(ctx, p, backendLinux) != nil {
		return nil
	}
	return &foreseen{session: who.SessionKey, plan: p, drop: s.expect(p.Spec)}
}

// isOf reports whether it is the sandbox of that session.
func (f *foreseen) isOf(who Who) bool { return f != nil && f.session == who.SessionKey }

func (f *foreseen) end() {
	if f != nil {
		f.drop()
	}
}
