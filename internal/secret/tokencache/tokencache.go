// Package tokencache has what all kinds of tokens share: the state of a token, and a
// cache that saves reading it from the store at every use.
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

// State returns the state of a token at a time. Revoked is nil for a token that was
// not revoked.
func State(now, expires time.Time, revoked *time.Time) string {
	switch {
	case revoked != nil && !now.Before(*revoked):
		return Revoked
	case !now.Before(expires):
		return Expired
	}
	return Active
}

// maxEntries bounds the tokens in a cache.
const maxEntries = 4096

// Cache keeps tokens that were read from a store a moment ago. It is safe for
// concurrent use.
type Cache[T any] struct {
	life time.Duration
	mu   sync.Mutex
	kept map[string]entry[T]
}

type entry[T any] struct {
	token T
	at    time.Time
}

// New returns a cache that keeps each token for life.
func New[T any](life time.Duration) *Cache[T] {
	return &Cache[T]{life: life, kept: map[string]entry[T]{}}
}

// Get returns a token that was read less than a life ago. One that was read in the
// future does not count: the clock was set back, so its age is not known.
func (r *Cache[T]) Get(id string, now time.Time) (token T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kept[id]
	if age := now.Sub(found.at); !ok || age < 0 || age >= r.life {
		return token, false
	}
	return found.token, true
}

// Put adds a token that was read at a time.
func (r *Cache[T]) Put(id string, token T, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxEntries {
		clear(r.kept)
	}
	r.kept[id] = entry[T]{token, at}
}

// Delete removes a token, so that it is read again at its next use.
func (r *Cache[T]) Delete(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, id)
}
