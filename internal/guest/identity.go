package guest

import (
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// identityOnce holds the identity that a host gave this guest. It is set once.
type identityOnce struct {
	mu   sync.Mutex
	held wire.Identity
}

// accept sets the identity unless there is another already.
func (o *identityOnce) accept(asked *wire.Identity) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held.Claim == "" {
		o.held = *asked
	}
	if o.held != *asked {
		return wire.Fail(wire.CodeTaken, "the sandbox was given to another name already")
	}
	return nil
}

// identify accepts the identity of a sandbox that waited in a pool.
func (c *call) identify(asked *wire.Identity) error {
	if !asked.Valid() {
		return wire.Fail(wire.CodeInvalid, "the identity is malformed")
	}
	if err := c.server.identity.accept(asked); err != nil {
		return err
	}
	return c.result(asked)
}
