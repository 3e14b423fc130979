package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxPieces is how many pieces one call moves.
	maxPieces = 8
	// maxBytes is how much one call moves.
	maxBytes = 512 << 10
)

// transfer is one direction of a connection: what is to be moved, and what came
// of it.
type transfer struct {
	one, many uintptr // the calls for one piece and for several
	pieces    [maxPieces]unix.Iovec
	used      int
	room      int // below maxBytes
	moved     int
	errno     syscall.Errno
	attempt   func(fd uintptr) bool // bound once: a closure for each call would be garbage
}

func (t *transfer) use(one, many uintptr) {
	t.one, t.many, t.room, t.attempt = one, many, maxBytes, t.try
}

// add adds a piece, or its beginning; false if no more fits.
func (t *transfer) add(b []byte) bool {
	b = b[:min(len(b), t.room)]
	if len(b) > 0 {
		t.pieces[t.used].Base = unsafe.SliceData(b)
		t.pieces[t.used].SetLen(len(b))
		t.used++
		t.room -= len(b)
	}
	return t.used < maxPieces && t.room > 0
}

// try moves what can be moved at once; false if that is nothing.
func (t *transfer) try(fd uintptr) bool {
	for {
		n, errno := t.call(fd)
		if errno == unix.EINTR {
			continue
		}
		t.moved, t.errno = n, errno
		return errno != unix.EAGAIN
	}
}

// take returns what was moved, and the error, and clears the pieces.
func (t *transfer) take() (int, syscall.Errno) {
	clear(t.pieces[:t.used])
	t.used, t.room = 0, maxBytes
	return t.moved, t.errno
}
