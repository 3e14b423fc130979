package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// lastWords bounds how long answers wait for a client that closed its end.
const lastWords = time.Second

// Serve serves one client over two streams until it closes its end, sends what is no
// message, or the context ends. Whatever the client's calls run has ended when it returns.
func (s *Session) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	defer s.Close()
	t := &transport{in: in, out: out, read: make(chan error, 1)}
	connected, err := newServer(s, nil).Connect(context.WithoutCancel(ctx), t, nil)
	if err != nil {
		return err
	}
	select {
	case err = <-t.read:
		err = ended(err)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = connected.Close() // what could not be said is lost
	}()
	select {
	case <-closed:
	case <-time.After(lastWords):
	}
	return err
}

// ended is why a client is no longer served; nil if it closed its end.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return errhint.With(fmt.Errorf("what the client sent is no message: %w", err), fmt.Sprintf("an MCP client sends JSON-RPC, a line of at most %d bytes each", maxMessage))
}
