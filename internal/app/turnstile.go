package app

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// turnstile lets as many tasks compute at once as there are cores. The others
// wait without being in anybody's way: what is said meanwhile in the sessions that
// talk already is passed on by goroutines that would have to queue behind them.
type turnstile chan struct{}

// turnMost is how long a turn lasts at most. What takes longer does not compute: it
// waits for something, an engine perhaps, and others must not wait for that.
const turnMost = 100 * time.Millisecond

func newTurnstile() turnstile { return make(turnstile, runtime.GOMAXPROCS(0)) }

// enter waits for a turn. Leave ends it, and may be called more than once.
func (t turnstile) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(func() { <-t })
	timer := time.AfterFunc(turnMost, give)
	return func() { timer.Stop(); give() }, nil
}
