package app

import (
	"context"
	"errors"
	"slices"
)

// EnginesAnswer asks every engine that has sandboxes of ours, and the one that
// the next would be made with. What does not answer was neither pruned nor
// repaired, which prune itself takes in its stride.
func (a *App) EnginesAnswer(ctx context.Context) error {
	backends, err := a.registry.Backends(ctx)
	if err != nil {
		return err
	}
	var silent []error
	if p, err := a.Plan(Subject{}); err == nil {
		next, err := a.Backend(ctx, p, "").require()
		if err == nil && !slices.Contains(backends, next) {
			backends = append(backends, next)
		} else if len(backends) == 0 {
			silent = append(silent, err)
		}
	}
	for _, backend := range backends {
		rt, err := a.runtimes.get(ctx, backend)
		if err == nil {
			_, err = rt.List(ctx)
		}
		silent = append(silent, err)
	}
	return errors.Join(silent...)
}
