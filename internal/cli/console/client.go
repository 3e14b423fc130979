package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// ErrClientGone is the cause of a context that ended with the program that started this one.
var ErrClientGone = errors.New("the program that started this one is gone")

const (
	// parentEvery is how often the parent is looked at.
	parentEvery = time.Second
	// inputGrace is how long a command may take to end after its client closed its input.
	inputGrace = 3 * time.Second
)

// WithParent returns a context that ends when the program that started this one ends.
func WithParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	go func() {
		tick := time.NewTicker(parentEvery)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(ErrClientGone)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// WithClient is WithParent for a command that reads the returned input: the context also
// ends a moment after the end of the input.
func WithClient(ctx context.Context, in io.Reader) (context.Context, io.Reader, context.CancelFunc) {
	ctx, stop := WithParent(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	input := &clientInput{Reader: in, ended: func() { time.AfterFunc(inputGrace, func() { cancel(ErrClientGone) }) }}
	return ctx, input, func() { cancel(context.Canceled); stop() }
}

// clientInput calls a function, once, when it has been read to its end.
type clientInput struct {
	io.Reader
	once  sync.Once
	ended func()
}

// Read implements io.Reader.
func (c *clientInput) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		c.once.Do(c.ended)
	}
	return n, err
}
