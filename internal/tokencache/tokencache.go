// Package tokencache is what tokens of every kind have in common: until when one is
// good, and that it is not read from the store at every use.
package tokencache

import (
	"sync"
	"time"
)

// The states of a token.
const (
	Active  = "active"
	Expired = "expired"
	Revoked = "revoked"
)

// State is that of a token at a moment. A token that nobody revoked has nil for
// that time.
func State(now, expires time.Time, revoked *time.Time) string {
	switch {
	case revoked != nil && !now.Before(*revoked):
		return Revoked
	case !now.Before(expires):
		return Expired
	}
	return Active
}

// maxEntries is how many are kept.
const maxEntries = 4096

// Cache keeps what was read of tokens a moment ago. It is safe for concurrent
// use.
type Cache[T any] struct {
	life time.Duration
	mu   sync.Mutex
	kept map[string]entry[T]
}

type entry[T any] struct {
	token T
	at    time.Time
}

// New returns one that keeps each token for life.
func New[T any](life time.Duration) *Cache[T] {
	return &Cache[T]{life: life, kept: map[string]entry[T]{}}
}

// Get returns what was read of a token less than a life ago. What was read in
// the future does not count: the clock was set back, and nobody knows how long
// ago that was.
func (r *Cache[T]) Get(id string, now time.Time) (token T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kept[id]
	if age := now.Sub(found.at); !ok || age < 0 || age >= r.life {
		return token, false
	}
	return found.token, true
}

// Put keeps what was read of a token at a moment.
func (r *Cache[T]) Put(id string, token T, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxEntries {
		clear(r.kept)
	}
	r.kept[id] = entry[T]{token, at}
}

// Delete has a token read again at its next use.
func (r *Cache[T]) Delete(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, id)
}
