package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
)

// errWithdrawn is the end of a request whose memory was taken back.
var errWithdrawn = errors.New("the request was withdrawn")

// sentBody is a large body of a request on its way to the upstream, which is not
// copied. Net/http reads it in a goroutine of its own, perhaps still when the
// answer is there, so its memory must not be used again before wait or withdraw.
type sentBody struct {
	mu        sync.Mutex
	pieces    [][]byte
	withdrawn bool          // its memory belongs to others again
	open      int           // readers that net/http has not finished
	read      chan struct{} // closed with the last of them; nil: nothing waits
}

// reader returns a reader of the whole body. Net/http asks for another if a kept
// connection turns out to be closed before anything was written to it.
func (b *sentBody) reader() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	return &bodyReader{from: b}, nil
}

// wait waits until net/http has read the body to its end, or closed it.
func (b *sentBody) wait(ctx context.Context) error {
	b.mu.Lock()
	if b.open <= 0 {
		b.mu.Unlock()
		return nil
	}
	read := make(chan struct{})
	b.read = read
	b.mu.Unlock()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withdraw takes the memory back: what was not sent will not be.
func (b *sentBody) withdraw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.withdrawn, b.pieces = true, nil
}

// isSending reports whether net/http has not read all of it.
func (b *sentBody) isSending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open > 0
}

// bodyReader reads a sentBody once.
type bodyReader struct {
	from          *sentBody
	piece, offset int
	finished      bool // it was read to its end, or closed
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (n int, err error) {
	b := r.from
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.finished:
		return 0, io.EOF
	case b.withdrawn:
		return 0, errWithdrawn
	}
	for n < len(p) && r.piece < len(b.pieces) {
		some := copy(p[n:], b.pieces[r.piece][r.offset:])
		n, r.offset = n+some, r.offset+some
		if r.offset == len(b.pieces[r.piece]) {
			r.piece, r.offset = r.piece+1, 0
		}
	}
	if r.piece == len(b.pieces) {
		err = io.EOF
		r.finish()
	}
	return n, err
}

// Close implements io.Closer.
func (r *bodyReader) Close() error {
	r.from.mu.Lock()
	defer r.from.mu.Unlock()
	r.finish()
	return nil
}

// finish notes, with the lock held, that nothing more is read.
func (r *bodyReader) finish() {
	if r.finished {
		return
	}
	b := r.from
	r.finished = true
	if b.open--; b.open == 0 && b.read != nil {
		close(b.read)
		b.read = nil
	}
}
