package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// EnginesAnswer lists the sandboxes of every engine that has some of ours, and of
// the one that the next would be made with. It returns an error for each engine
// that does not answer: what it has was neither pruned nor repaired.
func (d *Doctor) EnginesAnswer(ctx context.Context) error {
	backends, err := d.Registry.Backends(ctx)
	if err != nil {
		return err
	}
	var silent []error
	if p, err := d.Plan(provide.Subject{}); err == nil {
		next, err := d.Backend(ctx, p, "").Require()
		if err == nil && !slices.Contains(backends, next) {
			backends = append(backends, next)
		} else if len(backends) == 0 {
			silent = append(silent, err)
		}
	}
	for _, backend := range backends {
		rt, err := d.Runtime(ctx, backend)
		if err == nil {
			_, err = rt.List(ctx)
		}
		silent = append(silent, err)
	}
	return errors.Join(silent...)
}
