package devtools

import (
	"context"
	"errors"

	"github.com/coder/websocket"
)

// ErrBusy is returned where too many calls wait for an answer.
var ErrBusy = errors.New("too many calls wait for the browser")

// waiting is a call that waits for its answer.
type waiting struct {
	session string
	answers chan<- *message
}

// crashed is the event of a target whose process has ended: nothing answers there.
const crashed = "Inspector.targetCrashed"

// crash ends the calls of a session whose target has crashed. The caller holds the lock.
func (c *Conn) crash(session string) {
	for id, call := range c.calls {
		if call.session == session && session != "" {
			delete(c.calls, id)
			call.answers <- &message{SessionID: session, Error: &CallError{Message: "the page has crashed"}}
		}
	}
}

// begin makes the number of a call and where its answer comes.
func (c *Conn) begin(session string) (id int64, answers <-chan *message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	if len(c.calls) == maxCalls {
		return 0, nil, ErrBusy
	}
	c.last++
	made := make(chan *message, 1)
	c.calls[c.last] = waiting{session, made}
	return c.last, made, nil
}

// forget ends the wait for an answer.
func (c *Conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection is over, or nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// write sends a message. A WebSocket is closed when the context of a write ends, so the
// write does not end with its caller's: the calls of others would fail with it.
func (c *Conn) write(ctx context.Context, text []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, text)
}
