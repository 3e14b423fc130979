package host

import (
	"context"

	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// egressSide is the half of a session's sandbox that has egress.
type egressSide struct {
	handle *sandbox.Handle
	at     *tool.Location
	half   policy.Half
}

func sideOf(s *provide.ReadySandbox, o *tool.Options) egressSide {
	if s.Net != nil {
		return egressSide{s.Net, o.Networked, policy.HalfNetworked}
	}
	return egressSide{s.Handle, o.Isolated, policy.HalfIsolated}
}

// openEgress gives the commands of tools the egress that the configuration says: those of
// the networked half where there are two, else all. The returned function ends it.
func (h *Host) openEgress(ctx context.Context, s *provide.ReadySandbox, account string, o *tool.Options) (end func(), err error) {
	side := sideOf(s, o)
	if side.at.Network { // one of its own, of an engine
		return func() {}, nil
	}
	e, err := h.egress.Open(ctx, side.handle, s.Plan, egress.Options{Config: egress.Of(side.half), Account: account})
	if err != nil || e == nil {
		return func() {}, err
	}
	side.at.Egress, side.at.Network = e, e.Server() != nil
	return func() {
		if err := e.Close(); err != nil {
			h.Logger.WarnContext(context.WithoutCancel(ctx), "egress of a session", "error", err)
		}
	}, nil
}

// keepBackground gives egress to commands that an agent's tools start in the background.
// They keep it when the agent is done, for as long as this process lives.
func (t *Toolbox) keepBackground() {
	if t.sandbox == nil {
		return
	}
	side := sideOf(t.sandbox, &t.Options)
	if side.at.Egress == nil {
		return
	}
	open := func(ctx context.Context) (*egress.Egress, error) {
		return t.host.egress.Open(ctx, side.handle, t.Plan, egress.Options{Config: egress.Of(side.half), Account: t.account})
	}
	b := t.host.useBackground(side.handle.Name+"\x00"+t.account, side.handle.Machine, open)
	side.at.Background = b
	release := t.release
	t.release = func() { release(); b.leave() }
}
