package sandbox

import "context"

// Halt stops a sandbox that is not in use, with its background commands. It returns
// ErrBusy if it is in use, and nil if it does not run.
func (m *Manager) Halt(ctx context.Context, name string) error {
	return m.Exclusively(name, func() error {
		inst, err := m.find(ctx, name)
		if err != nil {
			return err
		}
		m.forget(name)
		if state := inst.Seen().State; state != StateRunning && state != StatePaused {
			return nil
		}
		return inst.Stop(ctx, endGrace)
	})
}
