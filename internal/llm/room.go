package llm

import (
	"errors"
	"sync/atomic"
)

// errBusy is a server whose memory for bodies is used up.
var errBusy = errors.New("too many large requests are under way")

// room bounds the memory of all bodies together.
type room struct {
	limit int64
	used  atomic.Int64
}

func (r *room) take(n int64) bool {
	if r.used.Add(n) > r.limit {
		r.used.Add(-n)
		return false
	}
	return true
}

// memory is the part of one request. It implements h1.Room.
type memory struct {
	room *room
	held int64
}

// leastGrowth is the smallest piece that is taken.
const leastGrowth = 64 << 10

// Grow implements h1.Room.
func (m *memory) Grow(buf []byte, n int) ([]byte, error) {
	size := max(int64(len(buf)+n), 2*int64(cap(buf)), leastGrowth)
	if !m.room.take(size) {
		return buf, errBusy
	}
	larger := append(make([]byte, 0, size), buf...)
	m.room.used.Add(-m.held)
	m.held = size
	return larger, nil
}

// free gives everything back.
func (m *memory) free() {
	m.room.used.Add(-m.held)
	m.held = 0
}
