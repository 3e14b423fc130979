package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// stableAfter is how long a connection must last for the next one to be made
// without a wait.
const stableAfter = 30 * time.Second

// maxSilentTicks is after how many tick intervals without a frame the connection is
// closed.
const maxSilentTicks = 3

// connectLoop connects, and reconnects until ctx ends.
func (c *Client) connectLoop(ctx context.Context) {
	defer close(c.ended)
	wait := c.options.RetryMin
	for ctx.Err() == nil {
		began := time.Now()
		err := c.connectOnce(ctx)
		if time.Since(began) > stableAfter {
			wait = c.options.RetryMin
		}
		c.options.Logger.DebugContext(ctx, "no connection to the gateway", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)): //nolint:gosec // jitter
		}
		wait = min(2*wait, c.options.RetryMax)
	}
}

// connectOnce connects and serves the connection until its end.
func (c *Client) connectOnce(ctx context.Context) error {
	conn, hello, err := c.dial(ctx)
	if err != nil {
		c.recordFailure(err)
		return err
	}
	l := &clientConn{client: c, conn: conn, hello: hello, done: make(chan struct{}), pending: map[string]*call{}}
	c.set(l, nil)
	err = l.serve(ctx)
	c.set(nil, nil)
	close(l.done)
	if ctx.Err() != nil {
		_ = conn.Close(CloseNormal, "") // the gateway may be gone
	}
	conn.Drop()
	return err
}

func (c *Client) dial(ctx context.Context) (*Conn, *Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Handshake)
	defer cancel()
	conn, err := Dial(ctx, c.options.URL, c.options.Dial)
	if err != nil {
		return nil, nil, err
	}
	hello, err := c.handshake(ctx, conn)
	if err != nil {
		conn.Drop()
		return nil, nil, err
	}
	return conn, hello, nil
}

// recordFailure stores why a connection failed. Only a Refusal ends waiting calls.
func (c *Client) recordFailure(err error) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		c.set(nil, refusal)
		return
	}
	c.mu.Lock()
	c.last = err
	c.mu.Unlock()
	c.set(nil, nil)
}

func (c *Client) set(l *clientConn, refused error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.refused = l, refused
	c.wakeWaiters()
}

// clientConn is one connection and the calls that wait for its answers.
type clientConn struct {
	client *Client
	conn   *Conn
	hello  *Hello
	done   chan struct{} // closed when the connection is lost

	mu      sync.Mutex
	last    int64
	pending map[string]*call
}

// call is a request that waits for answers.
type call struct {
	link    *clientConn
	id      string
	method  string
	answers chan *frame
}

// maxAnswers bounds the answers to one request.
const maxAnswers = 2

func (l *clientConn) ask(ctx context.Context, method string, params any) (*call, error) {
	l.mu.Lock()
	if len(l.pending) >= l.client.options.MaxPending {
		l.mu.Unlock()
		return nil, ErrBusy
	}
	l.last++
	k := &call{l, strconv.FormatInt(l.last, 10), method, make(chan *frame, maxAnswers)}
	l.pending[k.id] = k
	l.mu.Unlock()
	data, err := encodeRequest(k.id, method, params)
	if err == nil {
		err = l.write(ctx, data)
	}
	if err != nil {
		l.forget(k)
		return nil, err
	}
	return k, nil
}

// write sends a request. The caller's context does not bound the write itself:
// ending it there would close the connection of all others.
func (l *clientConn) write(ctx context.Context, data []byte) error {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.client.options.Timeout)
	defer cancel()
	if err := l.conn.Write(sending, data); err != nil {
		return ErrLost
	}
	return nil
}

func (l *clientConn) forget(k *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, k.id)
}

// next waits for the next answer.
func (k *call) next(ctx context.Context) (json.RawMessage, error) {
	select {
	case f := <-k.answers:
		return k.read(f)
	default:
	}
	select {
	case f := <-k.answers:
		return k.read(f)
	case <-k.link.done:
		return nil, fmt.Errorf("%s: %w", k.method, ErrLost)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer of the gateway: %w", k.method, context.Cause(ctx))
	}
}

func (k *call) read(f *frame) (json.RawMessage, error) {
	if !f.OK {
		return nil, fmt.Errorf("%s: %w", k.method, failureOf(f.Error))
	}
	return f.Payload, nil
}

// serve reads until the connection ends, or has been silent for too long.
func (l *clientConn) serve(ctx context.Context) error {
	quiet := time.Duration(min(max(l.hello.Policy.TickIntervalMs, 1000), 120_000)) * time.Millisecond * maxSilentTicks
	for {
		reading, cancel := context.WithTimeout(ctx, quiet)
		f, err := readFrame(reading, l.conn)
		cancel()
		if err != nil {
			return err
		}
		switch f.Type {
		case TypeResponse:
			l.answer(f)
		case TypeEvent:
			l.client.deliver(f)
		}
	}
}

// answer passes a response to its call. A response without a call, or one too many,
// is dropped.
func (l *clientConn) answer(f *frame) {
	l.mu.Lock()
	k := l.pending[f.ID]
	l.mu.Unlock()
	if k == nil {
		return
	}
	select {
	case k.answers <- f:
	default:
	}
}
