package guest

import (
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// maxOnce bounds the wires for one command, of all hosts together: the guest
// would not keep track of more commands.
const maxOnce = maxProcesses

// serveOnce runs the one command that a wire is for.
func (s *server) serveOnce(conn net.Conn, hello *wire.Hello) error {
	defer s.tidy.later()
	stream := socket.Of(conn)
	c := &call{server: s, wire: &hostWire{}, stream: stream, reader: wire.NewReader(stream), once: true}
	err := c.serveOnce(hello)
	if err != nil {
		_ = stream.SetDeadline(time.Now().Add(drainPatience))
		_ = wire.WriteJSON(stream, wire.FrameError, wire.AsError(err))
	}
	return err
}

func (c *call) serveOnce(hello *wire.Hello) error {
	defer c.server.onces.Add(-1)
	if c.server.onces.Add(1) > maxOnce {
		return wire.Fail(wire.CodeTooMany, "too many commands run in this sandbox")
	}
	if wire.Negotiate(hello) == 0 {
		return wire.Fail(wire.CodeVersion, "the guest speaks another version of the protocol")
	}
	req, err := c.reader.Request() // within what the greeting may take
	if err != nil {
		return err
	}
	if req.Op != wire.OpExec || req.Exec == nil || req.Exec.Background {
		return wire.Fail(wire.CodeInvalid, "this wire is for one command in the foreground")
	}
	if err := c.stream.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return c.exec(req.Exec)
}
