package protocol

import (
	"bufio"
	"context"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// corkBytes is how many bytes are collected before they are written.
const corkBytes = 64 << 10

// cork is a connection that can collect writes, so that messages queued together
// take one system call.
type cork struct {
	net.Conn
	mu   sync.Mutex
	held *[]byte // nil while writes are not collected
	pool *sync.Pool
}

// Write implements net.Conn.
func (c *cork) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.Conn.Write(p)
	}
	if len(*c.held)+len(p) > corkBytes {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > corkBytes {
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// flush writes what was collected. The caller holds the lock.
func (c *cork) flush() error {
	if len(*c.held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(*c.held)
	*c.held = (*c.held)[:0]
	return err
}

// collect begins to collect; until pull, writes have this time.
func (c *cork) collect(within time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, _ = c.pool.Get().(*[]byte)
	if c.held == nil {
		c.held = new([]byte)
	}
	return c.SetWriteDeadline(time.Now().Add(within))
}

// pull writes what was collected and stops collecting.
func (c *cork) pull() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	c.pool.Put(c.held)
	c.held = nil
	if err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}

// corkingWriter wraps the connection of a request in a cork when it is hijacked.
type corkingWriter struct {
	http.ResponseWriter
	pool *sync.Pool
	cork *cork
}

// Hijack implements http.Hijacker.
func (k *corkingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, both, err := http.NewResponseController(k.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	k.cork = &cork{Conn: conn, pool: k.pool}
	both.Writer.Reset(k.cork)
	return k.cork, both, nil
}

// WriteAll sends messages, with as few system calls as possible, within a time:
// beyond it the error is os.ErrDeadlineExceeded. Each message is used before the
// next one is generated. It is for one goroutine at a time, on the server's side.
func (c *Conn) WriteAll(within time.Duration, messages iter.Seq[[]byte]) error {
	if err := c.cork.collect(within); err != nil {
		return err
	}
	for data := range messages {
		if err := c.ws.Write(context.Background(), websocket.MessageText, data); err != nil {
			_ = c.cork.pull()
			return err
		}
	}
	return c.cork.pull()
}
