package machine

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/wire"
)

// Identify tells the guest of a pool whose sandbox it is from now on. A guest accepts
// that once: the same claim may be sent again, with another it is ErrTaken.
func (m *Machine) Identify(ctx context.Context, claim, name string) error {
	asked := wire.Identity{Claim: claim, Name: wire.Text(name)}
	if !asked.Valid() {
		return fmt.Errorf("the identity of sandbox %q is malformed", name)
	}
	var held wire.Identity
	if err := m.Call(ctx, &UnaryCall{Request: &wire.Request{Op: wire.OpIdentify, Identity: &asked}}, &held); err != nil {
		return err
	}
	if held != asked {
		return m.markBroken(fmt.Errorf("%w: the guest answered another identity", wire.ErrProtocol))
	}
	return nil
}
