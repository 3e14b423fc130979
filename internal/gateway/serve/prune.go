package serve

import (
	"context"
	"time"
)

// pruneInterval is how often the gateway looks for sandboxes that are idle or old. It is
// shorter than the time after which a request looks, so that no request waits for removals.
const pruneInterval = time.Minute

// pruneUntil prunes now and then until the context ends.
func (g *Gateway) pruneUntil(ctx context.Context) {
	for ctx.Err() == nil {
		g.parts.PruneAhead(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(pruneInterval):
		}
	}
}
