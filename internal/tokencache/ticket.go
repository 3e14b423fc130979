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

// maxRecent is how many are kept.
const maxRecent = 4096

// Recent keeps what was read of tokens a moment ago. It is safe for concurrent
// use.
type Recent[T any] struct {
	life time.Duration
	mu   sync.Mutex
	kept map[string]read[T]
}

type read[T any] struct {
	token T
	at    time.Time
}

// NewRecent returns one that keeps each token for life.
func NewRecent[T any](life time.Duration) *Recent[T] {
	return &Recent[T]{life: life, kept: map[string]read[T]{}}
}

// Find returns what was read of a token less than a life ago. What was read in
// the future does not count: the clock was set back, and nobody knows how long
// ago that was.
func (r *Recent[T]) Find(id string, now time.Time) (token T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kept[id]
	if age := now.Sub(found.at); !ok || age < 0 || age >= r.life {
		return token, false
	}
	return found.token, true
}

// Keep keeps what was read of a token at a moment.
func (r *Recent[T]) Keep(id string, token T, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxRecent {
		clear(r.kept)
	}
	r.kept[id] = read[T]{token, at}
}

// Forget has a token read again at its next use.
func (r *Recent[T]) Forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, id)
}
