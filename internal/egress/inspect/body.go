package inspect

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/h1"
)

// requestBody is the body of a request as the transport reads it. It ends with an error
// at a placeholder, before the last byte of it was handed on.
type requestBody struct {
	s      *session
	body   h1.Body
	find   *inject.Filter
	length int64 // -1: in chunks

	mu     sync.Mutex // the transport reads in a goroutine of its own
	left   []byte     // of the piece that was read last
	err    error      // io.EOF: read to its end
	handed int64      // bytes that the transport has
	closed bool

	whole atomic.Bool // the transport has all of it
}

func (s *session) newBody() *requestBody {
	b := &requestBody{s: s, body: s.reader.RequestBody(s.q.Length), find: s.inspector.options.Secrets.Bodies(), length: s.q.Length}
	if s.q.Length == 0 {
		b.err = io.EOF
		b.whole.Store(true)
	}
	return b
}

var errEnded = errors.New("the request has ended")

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.left) == 0 {
		if b.closed {
			return 0, errEnded
		}
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
		b.note()
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	b.handed += int64(n)
	b.note()
	return n, nil
}

// note sets whole when the transport has all of the body, so that the next bytes of the
// connection are another request.
func (b *requestBody) note() {
	if errors.Is(b.err, io.EOF) && len(b.left) == 0 || b.length > 0 && b.handed == b.length {
		b.whole.Store(true)
	}
}

// begin reads the first piece, so that nothing of a request is sent whose body is refused
// at once.
func (b *requestBody) begin() error {
	b.mu.Lock()
	b.fill()
	b.mu.Unlock()
	if leak := b.leak(); leak != nil {
		return leak
	}
	if failure := b.failure(); failure != nil {
		return b.s.badBody(failure)
	}
	return nil
}

// Close implements io.Closer. The transport may call it at any time.
func (b *requestBody) Close() error { return nil }

// fill reads the next piece.
func (b *requestBody) fill() {
	if b.err = b.s.client.SetReadDeadline(time.Now().Add(requestWait)); b.err != nil {
		return
	}
	piece, err := b.body.Next()
	switch {
	case errors.Is(err, io.EOF):
		b.left = b.find.Rest()
	case err == nil:
		b.left = b.find.Next(piece)
	}
	b.err = err
	if name := b.find.Found(); name != "" {
		b.left, b.err = nil, leakInBody(name)
	}
}

func leakInBody(secret string) *Refusal {
	leak := &inject.Leak{Secret: secret, Where: "the body", Reason: "holds its placeholder"}
	return &Refusal{Kind: LeakAttempt, Reason: leak.Error(), Secret: secret, status: 403}
}

// end makes sure that nothing reads the connection any more.
func (b *requestBody) end() {
	if !b.mu.TryLock() {
		_ = b.s.client.SetReadDeadline(time.Unix(1, 0)) // ends the read that is under way
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.closed = true
}

// leak returns the refusal of a body with a placeholder, nil if there was none.
func (b *requestBody) leak() *Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, _ := errors.AsType[*Refusal](b.err)
	return r
}

// failure returns why the body could not be read from the program, nil if it could.
func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil || errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}

// badBody says what is wrong with a body that could not be read.
func (s *session) badBody(err error) error {
	if p, ok := errors.AsType[*h1.ProtocolError](err); ok {
		return refuse(Protocol, p.Status, p.Reason)
	}
	return quiet(err)
}
