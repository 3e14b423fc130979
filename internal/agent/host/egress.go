package host

import (
	"context"

	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// openEgress gives the commands of tools the egress that the configuration says: those of
// the networked half where there are two, else all. The returned function ends it.
func (h *Host) openEgress(ctx context.Context, s *provide.ReadySandbox, account string, o *tool.Options) (end func(), err error) {
	handle, at, half := s.Handle, o.Isolated, policy.HalfIsolated
	if s.Net != nil {
		handle, at, half = s.Net, o.Networked, policy.HalfNetworked
	}
	if at.Network { // one of its own, of an engine
		return func() {}, nil
	}
	c := egress.ConfigOf(s.Plan, half)
	e, err := h.egress.Open(ctx, handle, s.Plan, egress.Options{Config: &c, Account: account})
	if err != nil || e == nil {
		return func() {}, err
	}
	at.Egress, at.Network = e, e.Server() != nil
	return func() {
		if err := e.Close(); err != nil {
			h.Logger.WarnContext(context.WithoutCancel(ctx), "egress of a session", "error", err)
		}
	}, nil
}
