package provide

import (
	"context"
	"fmt"
	"strconv"
)

// startsFact is how often gateways of this state directory were started, in the database.
const startsFact = "gateway-starts"

// Own makes this process the gateway of the state directory. The caller holds GatewayLock.
func (a *Installation) Own(ctx context.Context) (err error) {
	if a.starts, err = a.Registry.Raise(ctx, startsFact); err != nil {
		return fmt.Errorf("start of the gateway: %w", err)
	}
	a.Owned = true
	return nil
}

// GatewayStarts returns how often gateways of this state directory were started: that of a
// gateway is higher than that of every one before it, whatever else was lost.
func (a *Installation) GatewayStarts(ctx context.Context) (uint64, error) {
	if a.Owned {
		return a.starts, nil
	}
	known, err := a.Registry.Fact(ctx, startsFact)
	if known == "" || err != nil {
		return 0, err
	}
	return strconv.ParseUint(known, 10, 64)
}
