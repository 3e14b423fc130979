package app

import (
	"context"
	"errors"
	"slices"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// EnginesAnswer asks every engine that has sandboxes of ours, and the one that
// the next would be made with. What does not answer was neither pruned nor
// repaired, which prune itself takes in its stride.
func (a *App) EnginesAnswer(ctx context.Context) error {
	backends, err := a.Registry.Backends(ctx)
	if err != nil {
		return err
	}
	var silent []error
	if p, err := a.Plan(provide.Subject{}); err == nil {
		next, err := a.Backend(ctx, p, "").Require()
		if err == nil && !slices.Contains(backends, next) {
			backends = append(backends, next)
		} else if len(backends) == 0 {
			silent = append(silent, err)
		}
	}
	for _, backend := range backends {
		rt, err := a.Runtime(ctx, backend)
		if err == nil {
			_, err = rt.List(ctx)
		}
		silent = append(silent, err)
	}
	return errors.Join(silent...)
}
