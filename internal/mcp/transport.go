package mcp

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/tool"
)

const (
	// maxMessage bounds one message: the largest arguments of a tool, and what is around
	// them.
	maxMessage = tool.MaxArguments + 64<<10
	// maxWaiting and maxWaitingBytes bound the requests that are not answered yet. Of
	// more nothing is read, not even a cancellation: only a client that does not read its
	// answers gets there.
	maxWaiting      = 128
	maxWaitingBytes = 2 * maxMessage
)

// transport carries messages over two streams, a line each, within the bounds above.
type transport struct {
	in   io.ReadCloser
	out  io.WriteCloser
	read chan error // receives why reading ended
}

// Connect implements sdk.Transport.
func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := (&sdk.IOTransport{Reader: t.in, Writer: t.out, MaxLineLength: maxMessage}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	b := &boundedConn{Connection: conn, ended: t.read, waiting: map[jsonrpc.ID]int{}}
	b.room = sync.NewCond(&b.mu)
	return b, nil
}

// boundedConn reads a request only when there is room for it.
type boundedConn struct {
	sdk.Connection
	ended   chan<- error
	mu      sync.Mutex
	room    *sync.Cond
	waiting map[jsonrpc.ID]int // bytes of requests that are not answered
	bytes   int
	closed  bool
}

// Read implements sdk.Connection.
func (c *boundedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if !c.awaitRoom() {
		return nil, io.EOF
	}
	m, err := c.Connection.Read(ctx)
	if err != nil {
		select {
		case c.ended <- err:
		default: // it was said before
		}
	}
	if request, ok := m.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, doubled := c.waiting[request.ID]; !doubled { // which is refused, and counts once
			c.waiting[request.ID] = len(request.Params)
			c.bytes += len(request.Params)
		}
	}
	return m, err
}

// awaitRoom waits until a request may be read; it reports false if the connection closed.
func (c *boundedConn) awaitRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (len(c.waiting) >= maxWaiting || c.bytes >= maxWaitingBytes) {
		c.room.Wait()
	}
	return !c.closed
}

// Write implements sdk.Connection.
func (c *boundedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if response, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bytes -= c.waiting[response.ID]
		delete(c.waiting, response.ID)
		c.room.Broadcast()
	}
	return err
}

// Close implements sdk.Connection.
func (c *boundedConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.room.Broadcast()
	c.mu.Unlock()
	return c.Connection.Close()
}
