package llm

import (
	"errors"
	"sync"
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
	room  *room
	least int64 // the smallest piece; 0: pieceSize, and pooled
	held  int64
	piece *[pieceSize]byte // nil: memory of its own
}

// pieceSize is the smallest piece that is taken. Pieces of this size are kept for
// the next request: making and clearing them would cost more than reading.
const pieceSize = 512 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// Grow implements h1.Room.
func (m *memory) Grow(buf []byte, n int) ([]byte, error) {
	least := m.least
	if least == 0 {
		least = pieceSize
	}
	size := max(int64(len(buf)+n), 2*int64(cap(buf)), least)
	if !m.room.take(size) {
		return buf, errBusy
	}
	var larger []byte
	var piece *[pieceSize]byte
	if m.least == 0 && size == pieceSize {
		piece = pieces.Get().(*[pieceSize]byte)
		larger = piece[:0]
	} else {
		larger = make([]byte, 0, size)
	}
	larger = append(larger, buf...)
	m.free()
	m.held, m.piece = size, piece
	return larger, nil
}

// free gives everything back. Nothing that was read into it may be used any more.
func (m *memory) free() {
	m.room.used.Add(-m.held)
	if m.piece != nil {
		pieces.Put(m.piece)
	}
	m.held, m.piece = 0, nil
}
