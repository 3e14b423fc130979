package browsers

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/machine"
)

// stopGrace is how long a browser may take to end by itself.
const stopGrace = 2 * time.Second

// Stop ends a browser with all its connections; its sandbox stays.
func (s *Service) Stop(ctx context.Context, c *access.Caller, name string) (*api.Browser, error) {
	e, err := s.find(ctx, c, name)
	if err != nil {
		return nil, err
	}
	h, err := s.In.Manager.Attach(ctx, name)
	if err == nil {
		defer h.Release()
		err = endAll(ctx, h.Machine)
	}
	if err != nil {
		return nil, ErrNotRunning
	}
	b := s.describe(e, true)
	return &b, nil
}

// endAll ends the programs in a browser's sandbox: they are the browser.
func endAll(ctx context.Context, m *machine.Machine) error {
	all, err := m.Processes(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Result != nil {
			continue
		}
		if err := m.End(ctx, all[i].ID, stopGrace); err != nil {
			return err
		}
	}
	return nil
}
