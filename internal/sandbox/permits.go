package sandbox

import "context"

// Permits returns the error with which Ensure would refuse spec, or nil. It changes
// nothing, so that a caller can ask before it prepares directories for the sandbox.
func (m *Manager) Permits(ctx context.Context, spec *Spec) error {
	_, seen, err := m.observe(ctx, spec)
	if err != nil {
		return provision(spec, "open", err)
	}
	if decide(seen, spec, m.Now()) != actRefuse {
		return nil
	}
	return provision(spec, "reuse", changeRefusal(spec, seen, m.changes(ctx, spec)))
}
