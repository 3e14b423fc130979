// Package clocktest has a clock that tests move.
package clocktest

import (
	"sync"
	"time"
)

// Clock stands still until it is moved. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// At returns a clock that shows a time.
func At(at time.Time) *Clock { return &Clock{at: at} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Move moves the clock on.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
