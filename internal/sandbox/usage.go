package sandbox

import (
	"context"
	"fmt"
)

// Usage is what a sandbox uses now.
type Usage struct {
	Memory      uint64 `json:"memory"`      // bytes, caches that can be dropped left out
	MemoryLimit uint64 `json:"memoryLimit"` // bytes; 0 if it is not known
	CPU         uint64 `json:"cpu"`         // nanoseconds since the start
	Pids        uint64 `json:"pids"`
}

// A Measurer is an instance that can be asked what it uses.
type Measurer interface {
	Usage(ctx context.Context) (Usage, error)
}

// Usage returns what a running sandbox uses, as its runtime counts it.
func (m *Manager) Usage(ctx context.Context, name string) (Usage, error) {
	inst, err := m.find(ctx, name)
	if err != nil {
		return Usage{}, err
	}
	if inst.Seen().State == StateStopped || inst.Seen().State == StateCreated {
		return Usage{}, ErrNotRunning
	}
	measurer, ok := inst.(Measurer)
	if !ok {
		return Usage{}, fmt.Errorf("this runtime does not measure: %w", ErrUnsupported)
	}
	return measurer.Usage(ctx)
}

// Measurer returns what measures a sandbox, so that it can be asked often. Usage fails
// once the sandbox does not run.
func (m *Manager) Measurer(ctx context.Context, name string) (Measurer, error) {
	inst, err := m.find(ctx, name)
	if err != nil {
		return nil, err
	}
	measurer, ok := inst.(Measurer)
	if !ok {
		return nil, fmt.Errorf("this runtime does not measure: %w", ErrUnsupported)
	}
	return measurer, nil
}
