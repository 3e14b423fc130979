package h1_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
)

// script is a connection whose other side said its part in pieces of n bytes.
type script struct {
	net.Conn
	in string
	n  int
}

func (s *script) Read(p []byte) (int, error) {
	if s.in == "" {
		return 0, io.EOF
	}
	n := copy(p, s.in[:min(s.n, len(s.in))])
	s.in = s.in[n:]
	return n, nil
}

func (*script) SetReadDeadline(time.Time) error { return nil }

// heap gives room without asking.
type heap struct{}

func (heap) Grow(buf []byte, n int) ([]byte, error) {
	return append(make([]byte, 0, 2*len(buf)+n), buf...), nil
}

var patience = h1.HeadTimeouts{First: time.Minute, Rest: time.Minute}

// message is one request, read whole.
type message struct {
	head h1.Request
	body string
}

// readOne reads a request from pieces of n bytes, and returns what follows it.
func readOne(in string, n int) (m message, rest string, err error) {
	conn := &script{in: in, n: n}
	r := h1.NewReader(conn)
	if err := r.ReadRequest(&m.head, patience); err != nil {
		return m, "", err
	}
	body := r.RequestBody(m.head.Length)
	whole, err := body.ReadAll(nil, 1<<20, heap{})
	if err != nil {
		return m, "", err
	}
	m.body = string(whole)
	return m, strings.Repeat(".", r.Buffered()) + conn.in, nil
}

func lines(parts ...string) string { return strings.Join(parts, "\r\n") + "\r\n" }

func mustStatus(t *testing.T, err error, want int) {
	t.Helper()
	p, ok := err.(*h1.ProtocolError) //nolint:errorlint // it is not wrapped in here
	if !ok || p.Status != want {
		t.Fatalf("error %v, want a protocol error with status %d", err, want)
	}
}
