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

// lookAfter is how long a process may leave its input unread before it is looked
// whether its host is still there, and how often from then on.
const lookAfter = 500 * time.Millisecond

// serveOnce runs the one command that a wire is for.
func (s *server) serveOnce(conn net.Conn, hello *wire.Hello) error {
	defer s.releaser.schedule()
	stream := socket.Wrap(conn)
	c := &call{server: s, wire: &hostWire{}, stream: stream, reader: wire.NewReader(stream), once: true}
	err := c.serveOnce(hello)
	if err != nil {
		_ = stream.SetDeadline(time.Now().Add(drainTimeout))
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

// give gives input to the process, until the host leaves. On a wire for one
// command that is not seen by reading while the process does not take what came
// before.
func (c *call) give(p *process, owner int, input []byte) bool {
	line, ok := c.stream.(*socket.Conn)
	if !c.once || !ok {
		return p.stdio.write(owner, input)
	}
	given := make(chan struct{})
	defer close(given)
	defer time.AfterFunc(lookAfter, func() { breakOff(p, line, given) }).Stop()
	return p.stdio.write(owner, input)
}

// breakOff ends the giving when the host has left.
func breakOff(p *process, line *socket.Conn, given <-chan struct{}) {
	for !line.PeerClosed() {
		select {
		case <-given:
			return
		case <-time.After(lookAfter):
		}
	}
	p.stdio.takeInput()
}
