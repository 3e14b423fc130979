package membudget

import (
	"errors"
	"io"
	"sync"
)

// Share is the part of a budget that one request holds. It is not safe for use by
// several goroutines at once.
type Share struct {
	Budget    *Budget
	Holder    string // "" counts in the total only
	MinBuffer int64  // the smallest buffer; 0 is BufferSize, and pooled
	MaxBuffer int64  // the largest buffer that doubling makes; 0 is no bound

	held   int64
	pooled *[BufferSize]byte
}

// BufferSize is the smallest buffer of a share that names none. Buffers of this size
// are kept for the next request: making and clearing them costs more than reading.
const BufferSize = 512 << 10

var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// Grow returns buf with space for n more bytes. The old buffer must not be used
// any more.
func (s *Share) Grow(buf []byte, n int) ([]byte, error) {
	least := s.MinBuffer
	if least == 0 {
		least = BufferSize
	}
	size := 2 * int64(cap(buf))
	if s.MaxBuffer > 0 {
		size = min(size, s.MaxBuffer)
	}
	size = max(int64(len(buf)+n), size, least)
	if err := s.Budget.take(s.Holder, size); err != nil {
		return buf, err
	}
	larger, pooled := s.buffer(size)
	larger = append(larger, buf...)
	s.Free()
	s.held, s.pooled = size, pooled
	return larger, nil
}

func (s *Share) buffer(size int64) ([]byte, *[BufferSize]byte) {
	if s.MinBuffer == 0 && size == BufferSize {
		b := buffers.Get().(*[BufferSize]byte)
		return b[:0], b
	}
	return make([]byte, 0, size), nil
}

// Free returns all bytes to the budget. Nothing that was read into it may be used any more.
func (s *Share) Free() {
	if s.Budget == nil {
		return
	}
	s.Budget.give(s.Holder, s.held)
	if s.pooled != nil {
		buffers.Put(s.pooled)
	}
	s.held, s.pooled = 0, nil
}

// FreeBytes is how much ReadAll takes of every request without counting it, so that
// small requests pass while large ones hold the budget.
const FreeBytes = 4 << 10

// ReadAll reads r to its end into memory of the share. What is returned is valid
// until Free.
func ReadAll(r io.Reader, s *Share) ([]byte, error) {
	buf := make([]byte, 0, FreeBytes)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
		if len(buf) == cap(buf) {
			if buf, err = s.Grow(buf, FreeBytes); err != nil {
				return buf, err
			}
		}
	}
}
