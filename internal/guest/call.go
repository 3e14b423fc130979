package guest

import (
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// call is one operation that a host asked for.
type call struct {
	server *server
	wire   *hostWire
	stream net.Conn
	reader *wire.Reader
}

// dispatch performs the operation. An error it returns goes to the host.
func (c *call) dispatch(req *wire.Request) error {
	switch {
	case req.Op == wire.OpPing:
		return c.result(struct{}{})
	case req.Op == wire.OpInfo:
		return c.result(c.server.info())
	case req.Op == wire.OpExec && req.Exec != nil:
		return c.exec(req.Exec)
	case req.Op == wire.OpAttach && req.Attach != nil:
		return c.attach(req.Attach)
	case req.Op == wire.OpEnd && req.End != nil:
		return c.end(req.End)
	}
	return wire.Fail(wire.CodeUnknownOp, "the guest does not know the operation "+string(req.Op))
}

func (c *call) result(v any) error { return wire.WriteJSON(c.stream, wire.FrameResult, v) }

// exec starts a process and streams it.
func (c *call) exec(e *wire.Exec) error {
	if err := checkExec(e); err != nil {
		return err
	}
	if err := c.server.claim(e.ID); err != nil {
		return err
	}
	p, err := c.server.launch(e)
	if err != nil {
		c.server.forget(e.ID)
		return err
	}
	return c.follow(p, &wire.Attach{})
}

// attach streams a process that lost its wire.
func (c *call) attach(a *wire.Attach) error {
	p, err := c.server.process(a.ID)
	if err != nil {
		return err
	}
	return c.follow(p, a)
}

// end ends a process's tree and answers when it is gone.
func (c *call) end(e *wire.End) error {
	p, err := c.server.process(e.ID)
	if err != nil {
		return err
	}
	p.end(byRequest, graceOf(e.GraceMs))
	<-p.done
	if p.exit.Stuck {
		return wire.Fail(wire.CodeStuck, "some processes could not be ended")
	}
	return c.result(struct{}{})
}

// follow streams a process until its end, or until the host goes away.
func (c *call) follow(p *process, from *wire.Attach) error {
	reader := p.out.attach(from.Stdout, from.Stderr)
	started := wire.Started{PID: p.pid}
	if p.stdin != nil {
		started.Stdin = p.stdin.written()
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		c.feed(p)
		if at, ok := p.out.detach(reader); ok {
			c.server.abandon(p, at, c.patience())
		}
	}()
	if wire.WriteJSON(c.stream, wire.FrameStarted, started) == nil && c.send(p, reader) == nil {
		<-p.done
		_ = wire.WriteJSON(c.stream, wire.FrameExit, p.exit)
	}
	<-left
	return nil
}

// patience is how long a process may go on that the host has left: not at all
// if it left deliberately, a while if the wire broke.
func (c *call) patience() time.Duration {
	select {
	case <-c.wire.session.Done():
		return orphanFor
	default:
		return 0
	}
}

// feed moves the host's input to the process, until the host leaves.
func (c *call) feed(p *process) {
	for {
		frame, err := c.reader.Frame()
		if err != nil {
			return
		}
		switch {
		case p.stdin == nil:
		case frame.Type == wire.FrameStdin:
			p.stdin.write(frame.Payload)
		case frame.Type == wire.FrameStdinEOF:
			p.stdin.close()
		}
	}
}

// send moves output to the host until there will be no more.
func (c *call) send(p *process, reader int) error {
	for {
		more, err := p.out.await(reader)
		if err != nil || !more {
			return err
		}
		if err := c.sendPiece(p, reader); err != nil {
			return err
		}
	}
}

func (c *call) sendPiece(p *process, reader int) error {
	chunk := chunks.Get().(*[wire.HeaderSize + wire.MaxFrame]byte)
	defer chunks.Put(chunk)
	piece, err := p.out.take(reader, chunk[wire.HeaderSize:])
	if err != nil {
		return err
	}
	if piece.gap > 0 {
		gap := wire.Gap{Stream: outputFrames[piece.ring], Bytes: piece.gap}
		if err := wire.WriteJSON(c.stream, wire.FrameGap, gap); err != nil {
			return err
		}
	}
	wire.PutHeader(chunk[:], outputFrames[piece.ring], piece.n)
	_, err = c.stream.Write(chunk[:wire.HeaderSize+piece.n])
	return err
}

func graceOf(ms int64) time.Duration {
	if ms <= 0 {
		return defaultGrace
	}
	return min(time.Duration(ms)*time.Millisecond, maxGrace)
}
