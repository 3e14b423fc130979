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

// ClientOptions configure a Client.
type ClientOptions struct {
	URL string // ws://host:port or wss://host:port
	// Token is called for every connection: the token may have changed.
	Token func(context.Context) (string, error)
	// Device is the identity for gateways that require pairing; nil is accepted only
	// by a gateway on this machine.
	Device        *Device
	Name, Version string
	Scopes        []string // default: DefaultScopes
	Dial          DialOptions
	Handshake     time.Duration // bound of connect and hello; default 20 s
	Timeout       time.Duration // of a call whose context has no deadline; default 30 s
	RetryMin      time.Duration // first wait before connecting again; default 250 ms
	RetryMax      time.Duration // longest; default 15 s
	MaxPending    int           // calls under way at a time; default 1024
	MaxStream     int           // bytes of events not yet taken, per session; default 8 MiB
	Logger        *slog.Logger
}

// DefaultScopes are the scopes that driving sessions needs: sessions.patch needs
// the first.
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

// Errors of a call without an answer.
var (
	// ErrLost means that the connection ended before the answer: the request may have
	// been executed.
	ErrLost = errors.New("the connection to the gateway was lost")
	// ErrRestarted means that the gateway's process is another one than when the
	// request was sent.
	ErrRestarted = errors.New("the gateway was restarted, and what it was doing is lost")
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("the client of the gateway is closed")
	// ErrBusy means that MaxPending calls are under way.
	ErrBusy = errors.New("too many calls of the gateway are under way")
)

// Refusal is why a gateway refuses the connection. Retrying does not help until its
// configuration or the token changes.
type Refusal struct{ Reason *Error }

func (r *Refusal) Error() string {
	return "the gateway refuses the connection: " + r.Reason.Error()
}

func (r *Refusal) Unwrap() error { return r.Reason }

// refusalOf distinguishes a permanent refusal from a temporary failure.
func refusalOf(e *Error) error {
	e = failureOf(e)
	if e.Code == CodeUnavailable || e.Retryable {
		return fmt.Errorf("the gateway is not ready: %w", e)
	}
	return &Refusal{e}
}

// Client is a client of one gateway. It keeps a connection, and reconnects when it
// is lost. It is safe for concurrent use; Close ends it.
type Client struct {
	options  ClientOptions
	instance string
	cancel   context.CancelFunc
	ended    chan struct{}

	mu      sync.Mutex
	live    *clientConn   // nil while there is no connection
	refused error         // why there is none, if reconnecting cannot help
	last    error         // error of the last attempt to connect
	changed chan struct{} // closed and replaced when one of the two changes
	streams map[string]*Stream
	closed  bool
}

// NewClient returns a client, which starts to connect.
func NewClient(o ClientOptions) *Client {
	o.fill()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{options: o, instance: rand.Text(), cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{}), streams: map[string]*Stream{}}
	go c.connectLoop(ctx)
	return c
}

// Close ends the connection and every call that waits for it.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.wakeWaiters()
	c.mu.Unlock()
	c.cancel()
	<-c.ended
}

// Hello waits for a connection and returns the gateway's hello.
func (c *Client) Hello(ctx context.Context) (*Hello, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return l.hello, nil
}

// Call calls a method and decodes the first answer into result, which may be nil.
// An *Error is the gateway's answer.
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

// connected waits for a connection, unless the gateway has refused.
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

// wakeWaiters wakes goroutines that wait for a change of the connection. The caller
// holds the lock.
func (c *Client) wakeWaiters() {
	close(c.changed)
	c.changed = make(chan struct{})
}
