package sandbox

import (
	"context"
	"fmt"
	"time"
)

// Attach returns a sandbox that runs, as it is: nothing is made or started, and
// whether it is what the configuration now asks for does not matter.
// ErrNotFound if there is none of that name, ErrNotRunning if it does not run.
func (m *Manager) Attach(ctx context.Context, name string) (*Handle, error) {
	entry, err := m.Registry.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	rt, err := m.Runtime(ctx, entry.Backend)
	if err != nil {
		return nil, err
	}
	inst, err := rt.Open(ctx, entry.RuntimeName())
	if err != nil {
		return nil, err
	}
	spec := &Spec{Name: name, ScopeKey: entry.SessionKey}
	seen := entry.identify(inst.Seen())
	switch {
	case seen.Labels[LabelSessionKey] != entry.SessionKey:
		return nil, nameTaken(spec, seen.Labels[LabelSessionKey])
	case seen.State != StateRunning:
		return nil, fmt.Errorf("sandbox %q: %w", name, ErrNotRunning)
	}
	return m.enter(ctx, spec, inst, observation{configHash: seen.Labels[LabelConfigHash], lastUsed: time.UnixMilli(entry.LastUsedAtMs)}, nil)
}
