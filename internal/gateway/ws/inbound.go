package ws

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/membudget"
)

// readRequest reads one message within the memory budget of its token, and
// dispatches it.
func (c *conn) readRequest() error {
	share := membudget.Share{Budget: c.server.Inbound, Holder: c.caller.Token, MinBuffer: firstChunk, MaxBuffer: c.server.Limits.Frame + 1}
	defer share.Free()
	data, err := c.ReadWith(context.Background(), func(r io.Reader) ([]byte, error) { return c.readMessage(r, &share) })
	if err != nil {
		return err
	}
	c.dispatch(data)
	return nil
}

// firstChunk is the memory reserved for a message before its size is known.
const firstChunk = 64 << 10

// readMessage reads a message. The connection is closed if it arrives too slowly,
// or if there is no memory for it.
func (c *conn) readMessage(r io.Reader, share *membudget.Share) ([]byte, error) {
	late := time.AfterFunc(never, func() { c.closeFor(protocol.ClosePolicy, "the message arrives too slowly", "late") })
	defer late.Stop()
	data, err := membudget.ReadAll(c.server.Limits.Pace.Reader(r, func(t time.Time) { late.Reset(time.Until(t)) }), share)
	if errors.Is(err, membudget.ErrTotal) || errors.Is(err, membudget.ErrHolder) {
		data = nil // free it before the close, which may take a while
		share.Free()
		c.closeFor(protocol.CloseTryLater, err.Error(), "large")
	}
	return data, err
}

// closeFor closes the connection with a reason; a client that does not answer the
// close is dropped after Grace.
func (c *conn) closeFor(code int, reason, counted string) {
	c.server.meters.dropped.With(counted).Inc()
	c.server.Logger.WarnContext(c.ctx, "gateway connection given up", "connection", c.id, "token", c.caller.Token, "reason", reason)
	drop := time.AfterFunc(c.server.Limits.Grace, c.Drop)
	defer drop.Stop()
	c.closeWith(code, reason)
}
