package h1

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	smallBuffer = 8 << 10
	// bodySpare is the space behind the largest head, for chunk lengths and pieces
	// of a body.
	bodySpare   = 8 << 10
	largeBuffer = MaxHead + bodySpare
)

var smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}

// Reader reads messages from a connection, one after the other.
type Reader struct {
	// AllowUpgrade accepts requests for another protocol, which Request.Upgrade names.
	// Otherwise they are refused.
	AllowUpgrade bool

	conn   net.Conn
	small  *[smallBuffer]byte // pooled; nil after Release
	buf    []byte             // small, or larger after a large head
	r, w   int                // what was read and not yet used
	floor  int                // below lies a head that is still in use
	fields [MaxFields]Field
}

// NewReader returns a reader of conn. Release gives its buffer back.
func NewReader(conn net.Conn) *Reader {
	small := smallBuffers.Get().(*[smallBuffer]byte)
	return &Reader{conn: conn, small: small, buf: small[:]}
}

// Release gives the buffer back. Nothing that was handed out is valid any more.
func (r *Reader) Release() {
	if r.small != nil {
		smallBuffers.Put(r.small)
	}
	r.small, r.buf, r.r, r.w, r.floor = nil, nil, 0, 0, 0
}

// Buffered is the number of bytes that can be used without reading.
func (r *Reader) Buffered() int { return r.w - r.r }

// Rest returns the bytes that were read and not used, and uses them: those that follow
// the last request, once another protocol is spoken.
func (r *Reader) Rest() []byte {
	rest := r.buf[r.r:r.w]
	r.r = r.w
	return rest
}

// Holds reports whether a body of this length can be used without reading.
func (r *Reader) Holds(length int64) bool { return length >= 0 && int64(r.Buffered()) >= length }

// fill reads once, into free space above the floor.
func (r *Reader) fill() error {
	if r.r == r.w {
		r.r, r.w = r.floor, r.floor
	}
	if r.w == len(r.buf) {
		r.w = r.floor + copy(r.buf[r.floor:], r.buf[r.r:r.w])
		r.r = r.floor
	}
	if r.w == len(r.buf) {
		return errors.New("h1: no space to read into")
	}
	n, err := r.conn.Read(r.buf[r.w:])
	r.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// enlarge moves to a larger buffer, for a large head. It may only be called while
// no head is in use.
func (r *Reader) enlarge() {
	next := make([]byte, largeBuffer)
	r.w = copy(next, r.buf[r.r:r.w])
	r.r, r.buf = 0, next
}

// restart drops the last head and moves what follows it to the start.
func (r *Reader) restart() {
	r.floor = 0
	if len(r.buf) > smallBuffer && r.w-r.r <= smallBuffer {
		r.w = copy(r.small[:], r.buf[r.r:r.w])
		r.r, r.buf = 0, r.small[:]
	}
	if r.r > 0 {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
}

// probeTimeout is how long Probe waits for data or the end of the connection.
const probeTimeout = time.Millisecond

// Probe returns an error if the other side has closed the connection, or its
// half of it: io.EOF, or how it broke. What it sent meanwhile is kept for the
// next message; once the buffer is full nothing is read, and it returns nil.
func (r *Reader) Probe() error {
	if r.w-r.r+r.floor >= len(r.buf) {
		return nil
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(probeTimeout)); err != nil {
		return err
	}
	if err := r.fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
