package overlays

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Approve applies entries to the host, at the content that was shown.
func (s *Service) Approve(ctx context.Context, r *api.SyncApproval, by string) (*api.SyncApplied, error) {
	answer, err := onGate(ctx, s, &r.Subject, func(g *opened) (*api.SyncApplied, error) {
		choices := make([]gate.Choice, 0, len(r.Choices))
		for _, c := range r.Choices {
			choices = append(choices, gate.Choice(c))
		}
		return g.approve(ctx, "approve", choices, gate.Decision{By: by, ConfirmDeletions: r.ConfirmDeletions})
	})
	return decided(ctx, s, &r.Subject, answer, err)
}

func (g *opened) approve(ctx context.Context, verb string, choices []gate.Choice, d gate.Decision) (*api.SyncApplied, error) {
	applied, err := g.Approve(ctx, choices, d)
	if err != nil {
		return nil, err
	}
	g.changed(verb, len(applied.Files))
	return &api.SyncApplied{ID: applied.ID, Base: g.tree.Base, Files: applied.Files}, nil
}

// Override lets one entry pass that needs a person, and applies it.
func (s *Service) Override(ctx context.Context, r *api.SyncOverride, by string) (*api.SyncApplied, error) {
	answer, err := onGate(ctx, s, &r.Subject, func(g *opened) (*api.SyncApplied, error) {
		if err := g.Override(r.Path, r.SHA256, r.Reason, by); err != nil {
			return nil, err
		}
		return g.approve(ctx, "override", []gate.Choice{{Path: r.Path, SHA256: r.SHA256}}, gate.Decision{By: by})
	})
	return decided(ctx, s, &r.Subject, answer, err)
}

// Undo puts back what a batch changed on the host.
func (s *Service) Undo(ctx context.Context, r *api.SyncUndo, by string) (*api.SyncDone, error) {
	answer, err := onGate(ctx, s, &r.Subject, func(g *opened) (*api.SyncDone, error) {
		undone, err := g.Undo(ctx, r.ID, by)
		if err != nil {
			return nil, err
		}
		g.changed("undo", len(undone.Files))
		return &api.SyncDone{Files: undone.Files}, nil
	})
	return decided(ctx, s, &r.Subject, answer, err)
}

// AcceptTorn accepts changes that may be incomplete after the host's end.
func (s *Service) AcceptTorn(_ context.Context, r *api.SyncRequest, _ string) (*api.SyncDone, error) {
	return onTree(s, &r.Subject, func(found *subject, t *overlay.Tree) (*api.SyncDone, error) {
		if !t.Torn {
			return &api.SyncDone{Note: "they are not torn"}, nil
		}
		if err := t.AcceptTorn(); err != nil {
			return nil, err
		}
		found.changed("accept-torn", 0)
		return &api.SyncDone{}, nil
	})
}

// Reset discards every change of an overlay; they are kept aside for 7 days. With the
// workspace goes the repository that it belongs to.
func (s *Service) Reset(ctx context.Context, r *api.SyncRequest, _ string) (*api.SyncDone, error) {
	answer, err := onGate(ctx, s, &r.Subject, func(g *opened) (*api.SyncDone, error) {
		err := g.WhileGone(ctx, g.plan, func() error {
			for _, t := range g.changing() {
				if err := t.Reset(ctx); err != nil {
					return err
				}
			}
			return g.Forget()
		})
		if err != nil {
			return nil, err
		}
		g.changed("reset", 0)
		return &api.SyncDone{Note: "kept aside for 7 days"}, nil
	})
	return decided(ctx, s, &r.Subject, answer, err)
}

// Refresh lets the sandbox see the host's files as they are now, where the agent has
// not changed them.
func (s *Service) Refresh(ctx context.Context, r *api.SyncRequest, _ string) (*api.SyncDone, error) {
	return onGate(ctx, s, &r.Subject, func(g *opened) (*api.SyncDone, error) {
		done := 0
		err := g.WhileGone(ctx, g.plan, func() error {
			for _, t := range g.changing() {
				n, err := g.RefreshOverlay(ctx, g.plan, t)
				if err != nil {
					return err
				}
				done += n
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		g.changed("refresh", done)
		return &api.SyncDone{Note: fmt.Sprintf("%d of them had changed", done)}, nil
	})
}

// changing returns the overlays that are reset and refreshed together.
func (g *opened) changing() []*overlay.Tree {
	if g.git != nil && g.tree == g.trees[0] {
		return []*overlay.Tree{g.tree, g.git}
	}
	return []*overlay.Tree{g.tree}
}
