package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/runtime/image"
)

// ImageEngine is where images are built: the backend of that name, or the one
// that sandboxes of the default agent would use.
func (a *App) ImageEngine(ctx context.Context, backend string) (image.Engine, error) {
	if backend == "" {
		p, err := a.Plan(Subject{})
		if err != nil {
			return nil, err
		}
		if backend, err = a.Backend(ctx, p, "").require(); err != nil {
			return nil, err
		}
		if backend == backendLinux { // which has nothing to build with
			backend = backendDocker
		}
	}
	return a.runtimes.docker(ctx, backend)
}
