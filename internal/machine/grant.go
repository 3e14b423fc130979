package machine

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// grantGrace is what processes have between TERM and KILL when their grant ends.
const grantGrace = time.Second

// OpenGrant opens a grant in the sandbox: beside others if shared, otherwise once
// everything that was started under another is gone. It implements grant.Sandbox.
func (m *Machine) OpenGrant(ctx context.Context, id string, shared bool) error {
	call := grantCall(wire.OpGrantOpen, id)
	call.Grant.Shared = shared
	return m.Call(ctx, call, &struct{}{})
}

// EndGrant ends everything that was started under a grant. If the guest does not
// do it, the sandbox is killed from outside, if there is a way. It implements
// grant.Sandbox.
func (m *Machine) EndGrant(ctx context.Context, id string) error {
	err := m.Call(ctx, grantCall(wire.OpGrantEnd, id), &struct{}{})
	if err == nil || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrClosed) || m.options.Kill == nil {
		return err
	}
	m.options.Log.Warn("the guest does not end what ran under a grant: killing the sandbox", "error", err)
	return m.options.Kill(context.WithoutCancel(ctx))
}

func grantCall(op wire.Op, id string) *UnaryCall {
	return &UnaryCall{
		Request: &wire.Request{Op: op, Grant: &wire.Grant{ID: id, GraceMs: wire.Milliseconds(grantGrace)}},
		Timeout: grantGrace + endTimeout,
	}
}
