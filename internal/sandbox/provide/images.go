package provide

import (
	"context"

	"github.com/atoll-run/atoll/internal/runtime/image"
)

// ImageEngine is where images are built: the backend of that name, or the one
// that sandboxes of the default agent would use.
func (a *Installation) ImageEngine(ctx context.Context, backend string) (image.Engine, error) {
	if backend == "" {
		p, err := a.Plan(Subject{})
		if err != nil {
			return nil, err
		}
		if backend, err = a.Backend(ctx, p, "").Require(); err != nil {
			return nil, err
		}
		if backend == BackendLinux { // which has nothing to build with
			backend = BackendDocker
		}
	}
	return a.Engine(ctx, backend)
}

// BuildsInStore reports whether images are built for sandboxes that need no engine:
// if the backend is linux, or if none is chosen and no engine answers.
func (a *Installation) BuildsInStore(backend string) (bool, error) {
	if backend != "" {
		return backend == BackendLinux, nil
	}
	p, err := a.Plan(Subject{})
	if err != nil {
		return false, err
	}
	configured := p.Agent.Sandbox.Backend
	return (configured == BackendAuto || configured == BackendLinux) && ProbeEngine(a.EngineHost(BackendDocker)) != nil, nil
}
