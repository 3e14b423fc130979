package devtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// MaxMessage is the largest message of the browser.
	MaxMessage = 32 << 20
	// maxCalls is how many calls wait for an answer at once.
	maxCalls = 256
	// maxEvents is how many events of one subscription wait to be read; the oldest go.
	maxEvents = 32
	// maxEvent is the largest event that a subscription keeps.
	maxEvent = 1 << 20
	// defaultCallTimeout is the CallTimeout of a connection.
	defaultCallTimeout = time.Minute
	// sendTimeout is how long the browser may take to read a call; it is over then.
	sendTimeout = 10 * time.Second
)

// ErrClosed is returned by calls on a connection that is over.
var ErrClosed = errors.New("the browser's connection is over")

// Conn is a connection to a browser. Its methods may be called by several goroutines.
type Conn struct {
	// CallTimeout bounds each call, besides its caller's context; a minute by default. It
	// is set before the first call.
	CallTimeout time.Duration

	ws   *websocket.Conn
	done chan struct{}

	mu            sync.Mutex
	last          int64
	calls         map[int64]waiting
	subscriptions map[*subscription]struct{}
	everywhere    map[*everySession]struct{}
	err           error // why it is over
}

// message is what both sides send.
type message struct {
	ID        int64           `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *CallError      `json:"error,omitempty"`
}

// CallError is the answer of the browser to a call that failed.
type CallError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *CallError) Error() string { return fmt.Sprintf("%.500s (%d)", e.Message, e.Code) }

// Dial connects to the WebSocket of a browser. dial opens connections to its port.
func Dial(ctx context.Context, url string, dial func(context.Context) (net.Conn, error)) (*Conn, error) {
	ws, err := DialSocket(ctx, url, dial)
	if err != nil {
		return nil, err
	}
	c := &Conn{CallTimeout: defaultCallTimeout, ws: ws, done: make(chan struct{}), calls: map[int64]waiting{}, subscriptions: map[*subscription]struct{}{}, everywhere: map[*everySession]struct{}{}}
	go c.read()
	return c, nil
}

// Close ends the connection and waits until nothing reads it.
func (c *Conn) Close() error {
	err := c.ws.CloseNow()
	<-c.done
	return err
}

// read hands answers and events to those who wait for them.
func (c *Conn) read() {
	defer close(c.done)
	for {
		kind, data, err := c.ws.Read(context.Background())
		var m message
		if err == nil && (kind != websocket.MessageText || json.Unmarshal(data, &m) != nil) {
			err = errors.New("the browser sent what is no message")
		}
		if err != nil {
			c.end(err)
			return
		}
		c.deliver(&m)
	}
}

// deliver hands one message on. An answer to no call is dropped.
func (c *Conn) deliver(m *message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.ID == 0 {
		if m.Method == crashed {
			c.crash(m.SessionID)
		}
		for s := range c.subscriptions {
			s.take(m)
		}
		for s := range c.everywhere {
			s.take(m)
		}
		return
	}
	if call, ok := c.calls[m.ID]; ok {
		delete(c.calls, m.ID)
		call.answers <- m
	}
}

// end ends all calls and subscriptions.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = fmt.Errorf("%w: %w", ErrClosed, err)
	for id, call := range c.calls {
		delete(c.calls, id)
		close(call.answers)
	}
	for s := range c.subscriptions {
		delete(c.subscriptions, s)
		close(s.events)
	}
	for s := range c.everywhere {
		delete(c.everywhere, s)
		close(s.events)
	}
	_ = c.ws.CloseNow()
}
