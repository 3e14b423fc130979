package h1

import (
	"errors"
	"io"
	"os"
)

// Allocator gives memory for bodies.
type Allocator interface {
	// Grow returns a slice with the content of buf and room for at least n more
	// bytes, or an error if there is no room.
	Grow(buf []byte, n int) ([]byte, error)
}

// ReadAll appends the rest of the body to dst, up to limit bytes in all. No
// length is believed before its bytes have come: memory is taken as they do.
func (b *Body) ReadAll(dst []byte, limit int64, room Allocator) ([]byte, error) {
	if b.mode > limit {
		return dst, ErrTooLarge
	}
	for {
		if b.mode >= 0 && b.left > 0 && b.r.Buffered() == 0 {
			var err error
			if dst, err = b.readInto(dst, room); err != nil {
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
		if dst, err = ensure(dst, len(piece), room); err != nil {
			return dst, err
		}
		dst = append(dst, piece...)
	}
}

// firstRead is the room for a body of which nothing has come yet.
const firstRead = 512 << 10

// readInto reads once, past the buffer: for bodies with a length.
func (b *Body) readInto(dst []byte, room Allocator) ([]byte, error) {
	if len(dst) == cap(dst) {
		var err error
		want := min(b.left, max(int64(len(dst)), firstRead))
		if dst, err = ensure(dst, int(want), room); err != nil {
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

func ensure(dst []byte, n int, room Allocator) ([]byte, error) {
	if cap(dst)-len(dst) >= n {
		return dst, nil
	}
	return room.Grow(dst, n)
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
