// Package membudget bounds the memory that requests hold while they arrive: the
// bytes of all of them together, and those of each holder (a token, for instance).
// It also bounds how slowly they may arrive.
package membudget

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Errors of Share.Grow and ReadAll.
var (
	// ErrTotal means that the budget of all holders together is used up.
	ErrTotal = errors.New("too many large requests are under way")
	// ErrHolder means that one holder has used up its part.
	ErrHolder = errors.New("too many large requests of this caller are under way")
)

// Budget is a number of bytes that may be held at once.
type Budget struct {
	total, each int64
	used        atomic.Int64 // changed with mu held
	refused     atomic.Int64

	mu sync.Mutex
	by map[string]int64
}

// New returns a budget of total bytes, of which each named holder may have at most
// each; 0 bounds holders by the total alone.
func New(total, each int64) *Budget {
	return &Budget{total: total, each: each, by: map[string]int64{}}
}

// Used returns how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused returns how many requests for bytes were refused.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// take reserves n bytes for a holder, or returns why not.
func (b *Budget) take(holder string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.used.Load()+n > b.total:
		b.refused.Add(1)
		return ErrTotal
	case b.counts(holder) && b.by[holder]+n > b.each:
		b.refused.Add(1)
		return ErrHolder
	}
	b.used.Add(n)
	if b.counts(holder) {
		b.by[holder] += n
	}
	return nil
}

// counts reports whether the bytes of a holder are counted by themselves.
func (b *Budget) counts(holder string) bool { return b.each != 0 && holder != "" }

// give returns n bytes to the budget.
func (b *Budget) give(holder string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Add(-n)
	if !b.counts(holder) || n == 0 {
		return
	}
	if b.by[holder] -= n; b.by[holder] <= 0 {
		delete(b.by, holder)
	}
}
