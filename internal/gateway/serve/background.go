package serve

import (
	"context"
	"time"
)

// backgroundGrace is how long the end of the gateway waits for work in the background that
// does not end with its context, such as the removal of a sandbox on a node that does not
// answer; the next gateway goes on with it.
const backgroundGrace = 5 * time.Second

// inBackground calls work with a context that ends with the gateway.
func (g *Gateway) inBackground(ctx context.Context, work func(context.Context)) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); work(ctx) }()
	g.onClose(func() {
		stop()
		select {
		case <-done:
		case <-time.After(backgroundGrace):
		}
	})
}
