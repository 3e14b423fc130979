// Package cpusemaphore bounds how many tasks compute at once.
package cpusemaphore

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Semaphore lets as many tasks compute at once as there are cores, so that the
// goroutines that pass on events of other sessions do not queue behind them.
type Semaphore chan struct{}

// leaseMost is how long a task holds the semaphore at most. A task that takes longer
// does not compute: it waits, for an engine perhaps, and others must not wait for that.
const leaseMost = 100 * time.Millisecond

// New returns a semaphore for the cores of this process.
func New() Semaphore { return make(Semaphore, runtime.GOMAXPROCS(0)) }

// Enter waits for the semaphore. Leave releases it, and may be called more than once.
func (s Semaphore) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(func() { <-s })
	timer := time.AfterFunc(leaseMost, give)
	return func() { timer.Stop(); give() }, nil
}
