package protocol

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ClientOptions are what a Client is made of.
type ClientOptions struct {
	URL string // ws://host:port or wss://host:port
	// Token is asked for at every connect: it may have been changed.
	Token func(context.Context) (string, error)
	// Device is the identity that a gateway on another machine pairs with; nil
	// is none, which only a gateway on this machine takes.
	Device        *Device
	Name, Version string
	Scopes        []string // default: DefaultScopes
	Dial          DialOptions
	Handshake     time.Duration // bound of connect and hello; default 20 s
	Timeout       time.Duration // of a call whose context has no deadline; default 30 s
	RetryMin      time.Duration // first wait before connecting again; default 250 ms
	RetryMax      time.Duration // longest; default 15 s
	MaxPending    int           // calls under way at a time; default 1024
	MaxStream     int           // bytes of events that nobody has taken yet, of one session; default 8 MiB
	Logger        *slog.Logger
}

// DefaultScopes are what driving sessions needs: sessions.patch wants the first.
func DefaultScopes() []string { return []string{"operator.admin", "operator.read", "operator.write"} }

func (o *ClientOptions) fill() {
	o.Handshake, o.Timeout = cmp.Or(o.Handshake, 20*time.Second), cmp.Or(o.Timeout, 30*time.Second)
	o.RetryMin, o.RetryMax = cmp.Or(o.RetryMin, 250*time.Millisecond), cmp.Or(o.RetryMax, 15*time.Second)
	o.MaxPending, o.MaxStream = cmp.Or(o.MaxPending, 1024), cmp.Or(o.MaxStream, 8<<20)
	o.Name, o.Version = cmp.Or(o.Name, "Atoll"), cmp.Or(o.Version, "0")
	if o.Scopes == nil {
		o.Scopes = DefaultScopes()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Why there is no answer.
var (
	// ErrLost means that the connection ended before the answer came: what was
	// asked for may have been done.
	ErrLost = errors.New("the connection to the gateway was lost")
	// ErrRestarted means that the gateway that was asked is no more.
	ErrRestarted = errors.New("the gateway was restarted, and what it was doing is lost")
	// ErrClosed means that the client itself was closed.
	ErrClosed = errors.New("the client of the gateway is closed")
	// ErrBusy means that too many calls are under way.
	ErrBusy = errors.New("too many calls of the gateway are under way")
)

// Refusal is why a gateway does not take us at all. Trying again does not help
// until somebody changes something.
type Refusal struct{ Reason *Error }

func (r *Refusal) Error() string {
	return "the gateway refuses the connection: " + r.Reason.Error()
}

func (r *Refusal) Unwrap() error { return r.Reason }

// refusalOf tells a no from a not yet.
func refusalOf(e *Error) error {
	e = failureOf(e)
	if e.Code == CodeUnavailable || e.Retryable {
		return fmt.Errorf("the gateway is not ready: %w", e)
	}
	return &Refusal{e}
}

// Client is a client of one gateway. It keeps a connection, and makes a new one
// when that is lost. It is safe for concurrent use; Close ends it.
type Client struct {
	options  ClientOptions
	instance string
	cancel   context.CancelFunc
	ended    chan struct{}

	mu      sync.Mutex
	live    *clientConn   // nil while there is no connection
	refused error         // why there is none, if somebody must do something
	last    error         // why there was none the last time
	changed chan struct{} // closed and replaced when one of the two changes
	streams map[string]*Stream
	closed  bool
}

// NewClient returns a client, which begins to connect.
func NewClient(o ClientOptions) *Client {
	o.fill()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{options: o, instance: rand.Text(), cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{}), streams: map[string]*Stream{}}
	go c.connectLoop(ctx)
	return c
}

// Close ends the connection and everything that waits for it.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.wakeWaiters()
	c.mu.Unlock()
	c.cancel()
	<-c.ended
}

// Hello waits for a connection and returns what the gateway said of itself.
func (c *Client) Hello(ctx context.Context) (*Hello, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return l.hello, nil
}

// Call asks for a method and reads the first answer into result, which may be
// nil. An *Error is the gateway's own.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, err := c.connected(ctx)
	if err != nil {
		return err
	}
	call, err := l.ask(ctx, method, params)
	if err != nil {
		return err
	}
	defer l.forget(call)
	payload, err := call.next(ctx)
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(payload, result); err != nil {
		return fmt.Errorf("%s: the gateway's answer cannot be read", method)
	}
	return nil
}

func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// connected waits for a connection. A gateway that refuses us is no reason to
// wait.
func (c *Client) connected(ctx context.Context) (*clientConn, error) {
	for {
		c.mu.Lock()
		live, refused, last, changed, closed := c.live, c.refused, c.last, c.changed, c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case live != nil:
			return live, nil
		case refused != nil:
			return nil, refused
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if last != nil {
				return nil, fmt.Errorf("no connection to the gateway: %w: %w", context.Cause(ctx), last)
			}
			return nil, fmt.Errorf("no connection to the gateway: %w", context.Cause(ctx))
		}
	}
}

// wakeWaiters wakes everybody who waits; the caller holds the lock.
func (c *Client) wakeWaiters() {
	close(c.changed)
	c.changed = make(chan struct{})
}
