package guest

import (
	"io"
	"time"
	"weak"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

// exec starts a process and streams it, or answers at once if it runs in the background.
func (c *call) exec(e *wire.Exec) error {
	p, err := c.server.launch(e, c.wire)
	if err != nil {
		return err
	}
	p.supervise()
	if p.background {
		return c.result(wire.Started{PID: p.pid})
	}
	return c.follow(p, nil)
}

// attach streams a process whose wire broke.
func (c *call) attach(a *wire.Attach) error {
	p, err := c.server.table.find(a.ID)
	if err != nil {
		return err
	}
	if p.background {
		return wire.Fail(wire.CodeInvalid, "process "+a.ID+" runs in the background: read its logs")
	}
	return c.follow(p, a)
}

// follow streams a process until its end, or until the host leaves: from its start, or
// from the offsets of a host that attaches. A host that attaches, or that sent the
// request with the hello, first gets how much input the process has consumed.
func (c *call) follow(p *process, from *wire.Attach) error {
	reader, ok := p.out.attachFrom(from)
	if !ok {
		return wire.Fail(wire.CodeInvalid, "another wire has attached to process "+p.id)
	}
	owner, consumed := p.stdio.takeInput()
	left := make(chan struct{})
	go func() { defer close(left); c.feed(p, owner) }()
	watched := make(chan struct{})
	go func() { defer close(watched); c.watch(p, reader, left) }()
	var err error
	if from != nil || c.unbound {
		err = wire.WriteJSON(c.stream, wire.FrameStarted, wire.Started{PID: p.pid, Stdin: consumed})
	}
	if err == nil && c.send(p, reader) == nil {
		<-p.done
		c.sendEnd(p)
	}
	<-watched
	return nil
}

// sendEnd sends how a process ended, or why it did not begin.
func (c *call) sendEnd(p *process) {
	if p.failure != nil {
		_ = wire.WriteJSON(c.stream, wire.FrameError, wire.AsError(p.failure))
		return
	}
	_ = wire.WriteJSON(c.stream, wire.FrameExit, p.exit)
}

// watch waits for the host to leave: after the exit, when it has the result; before it,
// because it gave up or the wire broke. A host that closes its wire right after the
// stream has not lost it. It runs beside the input, which may block.
func (c *call) watch(p *process, reader int, left <-chan struct{}) {
	timeout := c.reattachTime(left)
	at, ok := p.out.detach(reader)
	if p.resultUnwanted.Load() { // read after detach, as end sets it before it calls hasReader
		timeout = 0
	}
	if ok {
		c.server.endUnlessAttached(p, at, timeout)
	}
}

// reattachTime waits for the host to leave, and returns how long it has to attach again:
// 0 if it closed the stream itself, or the connection has no parent.
func (c *call) reattachTime(left <-chan struct{}) time.Duration {
	if c.unbound {
		<-left
		return 0
	}
	select {
	case <-c.wire.Done():
	case <-left:
	}
	if c.wire.over() && !c.wire.Ended(c.stream) {
		return c.server.reattach
	}
	return 0
}

// endUnlessAttached ends and forgets a process after a time, unless a host has attached
// to it since. It holds no strong reference, so that a process that was forgotten
// before does not stay in memory.
func (s *server) endUnlessAttached(p *process, left int, after time.Duration) {
	held := weak.Make(p)
	time.AfterFunc(after, func() {
		if p := held.Value(); p != nil && p.out.unreadSince(left) {
			s.endAndForget(p)
		}
	})
}

// endAndForget ends a process without a reader, and removes it from the table.
func (s *server) endAndForget(p *process) {
	p.out.discardWhenFull()
	p.end(byRequest, p.grace)
	<-p.done
	s.table.forget(p.id)
}

// feed writes the host's input to the process, until the host leaves or another wire has
// attached.
func (c *call) feed(p *process, owner int) {
	for {
		frame, err := c.reader.Frame()
		if err != nil {
			return
		}
		switch frame.Type {
		case wire.FrameStdin:
			if !c.giveInput(p, owner, frame.Payload) {
				return
			}
		case wire.FrameStdinEOF:
			p.stdio.endInput(owner)
		}
	}
}

// send sends output to the host until its end.
func (c *call) send(p *process, reader int) error {
	for {
		more, err := p.out.await(reader)
		if err != nil || !more {
			return err
		}
		err = sendOutput(c.stream, func(b []byte) (outputPart, error) { return p.out.take(reader, b) })
		if err != nil {
			return err
		}
	}
}

// sendOutput sends the part of output that get returns.
func sendOutput(w io.Writer, get func([]byte) (outputPart, error)) error {
	buf := buffer.Get()
	defer buffer.Put(buf)
	piece, err := get(buf[wire.HeaderSize:])
	if err != nil {
		return err
	}
	if piece.gap > 0 {
		gap := wire.Gap{Stream: outputFrames[piece.ring], Bytes: piece.gap}
		if err := wire.WriteJSON(w, wire.FrameGap, gap); err != nil {
			return err
		}
	}
	if piece.n == 0 {
		return nil
	}
	wire.PutHeader(buf[:], outputFrames[piece.ring], piece.n)
	_, err = w.Write(buf[:wire.HeaderSize+piece.n])
	return err
}

// logs sends what a background process has written since the given offsets.
func (c *call) logs(a *wire.Attach) error {
	p, err := c.server.table.find(a.ID)
	if err != nil {
		return err
	}
	if !p.background {
		return wire.Fail(wire.CodeInvalid, "process "+a.ID+" does not run in the background")
	}
	if a.WaitMs > 0 {
		p.out.awaitBeyond(a.Stdout, a.Stderr, waitOf(a.WaitMs))
	}
	status := p.status()
	for i, span := range [2][2]int64{{a.Stdout, status.Stdout}, {a.Stderr, status.Stderr}} {
		if err := c.sendLog(p, i, span, a.Max); err != nil {
			return err
		}
	}
	return c.result(status)
}

// sendLog sends at most budget bytes of a span of one output.
func (c *call) sendLog(p *process, ring int, span [2]int64, budget int64) error {
	for offset := max(span[0], 0); offset < span[1] && budget > 0; {
		err := sendOutput(c.stream, func(b []byte) (outputPart, error) {
			piece := p.out.peek(ring, b[:min(int64(len(b)), budget)], offset)
			offset += piece.gap + int64(piece.n)
			budget -= int64(piece.n)
			return piece, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
