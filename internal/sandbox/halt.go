package sandbox

import "context"

// Halt stops a sandbox that nobody uses, with the commands in its background. It
// returns ErrBusy if somebody uses it, and nil if it does not run.
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
