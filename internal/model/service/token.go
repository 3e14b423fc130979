package service

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/token"
)

// Tokens is where session tokens of the shared proxy are minted and verified.
func (a *Service) Tokens() *token.Store { return token.NewStore(a.DB, nil) }

// Slots are the providers of a gateway's configuration, each for one run.
func (a *Service) Slots() *token.Slots { return token.NewSlots(a.DB, nil) }

// verifyToken returns whom a token speaks for: a session, or the run that has
// leased a slot.
func verifyToken(ctx context.Context, desk *token.Store, slots *token.Slots, text string) (*grant.Terms, error) {
	t, err := desk.Verify(ctx, text)
	if errors.Is(err, token.ErrInvalid) {
		return slots.Verify(ctx, text)
	}
	if err != nil {
		return nil, err
	}
	return &grant.Terms{
		Account: t.Account, Agent: t.Agent, Session: t.Session, Run: t.Run, Attempt: t.Attempt, Graph: t.Graph, Trace: t.Trace,
		Models: t.Models, Until: t.Expires,
	}, nil
}
