package h1

import (
	"errors"
	"io"
	"os"
)

// Allocator provides memory for bodies.
type Allocator interface {
	// Grow returns a slice with the content of buf and capacity for at least n more
	// bytes, or an error if the memory is used up.
	Grow(buf []byte, n int) ([]byte, error)
}

// ReadAll appends the rest of the body to dst, up to limit bytes in all. Memory
// is taken as bytes arrive, not by the length that was announced.
func (b *Body) ReadAll(dst []byte, limit int64, memory Allocator) ([]byte, error) {
	if b.mode > limit {
		return dst, ErrTooLarge
	}
	for {
		if b.mode >= 0 && b.left > 0 && b.r.Buffered() == 0 {
			var err error
			if dst, err = b.readInto(dst, memory); err != nil {
				return dst, err
			}
			continue
		}
		piece, err := b.Next()
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		if int64(len(dst)+len(piece)) > limit {
			return dst, ErrTooLarge
		}
		if dst, err = ensure(dst, len(piece), memory); err != nil {
			return dst, err
		}
		dst = append(dst, piece...)
	}
}

// firstRead is the first buffer of a body that has not begun to arrive.
const firstRead = 512 << 10

// readInto reads once, past the buffer: for bodies with a length.
func (b *Body) readInto(dst []byte, memory Allocator) ([]byte, error) {
	if len(dst) == cap(dst) {
		var err error
		want := min(b.left, max(int64(len(dst)), firstRead))
		if dst, err = ensure(dst, int(want), memory); err != nil {
			return dst, err
		}
	}
	space := dst[len(dst):cap(dst)]
	if int64(len(space)) > b.left {
		space = space[:b.left]
	}
	n, err := b.r.conn.Read(space)
	b.left -= int64(n)
	dst = dst[:len(dst)+n]
	if n > 0 {
		return dst, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = ErrTruncated
	}
	return dst, err
}

func ensure(dst []byte, n int, memory Allocator) ([]byte, error) {
	if cap(dst)-len(dst) >= n {
		return dst, nil
	}
	return memory.Grow(dst, n)
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
