package access

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// codes are one-time codes that log a web browser in as the owner. They live in memory:
// a code is used within CodeLife or never.
type codes struct {
	now func() time.Time

	mu   sync.Mutex
	good map[[sha256.Size]byte]time.Time // until when, by the hash of the code
}

// CodeLife is how long a code for a log-in is good; maxCodes bounds those that are.
const (
	CodeLife = time.Minute
	maxCodes = 16
)

func newCodes(now func() time.Time) *codes {
	return &codes{now: now, good: map[[sha256.Size]byte]time.Time{}}
}

// mint returns a new code, or ErrTooMany while too many are good.
func (c *codes) mint() (code string, expires time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for sum, until := range c.good {
		if !now.Before(until) {
			delete(c.good, sum)
		}
	}
	if len(c.good) >= maxCodes {
		return "", time.Time{}, ErrTooMany
	}
	code, expires = rand.Text(), now.Add(CodeLife)
	c.good[sha256.Sum256([]byte(code))] = expires
	return code, expires, nil
}

// redeem reports whether a code is good, and makes it good no more.
func (c *codes) redeem(code string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha256.Sum256([]byte(code))
	until, ok := c.good[sum]
	delete(c.good, sum)
	return ok && c.now().Before(until)
}
