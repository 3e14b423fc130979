package guest

import (
	"bufio"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// A command on a direct connection is expected to be over soon. Then no goroutine
// reads its output: the pipes hold it until the end, and all goes to the host in
// one message. A command that is not over soon is streamed.
const (
	// shortExecTime is how long a command without output may take.
	shortExecTime = 50 * time.Millisecond
	// shortExecTimeAfterOutput is how long one may take that has written something.
	shortExecTimeAfterOutput = 10 * time.Millisecond
	// maxShortOutput is how much of each output may wait in pipes and rings.
	maxShortOutput = 128 << 10
	// firstDrainAfter is when the pipes are first drained. Where many commands run,
	// each has less of the processors in that time: for every busyShortExecs of them
	// it is later by as much.
	firstDrainAfter = 2 * time.Millisecond
	busyShortExecs  = 8
)

// errStreamed ends a direct connection after a command that was streamed over it:
// input that the command did not read may lie before the next request.
var errStreamed = errors.New("the command was streamed")

// execDirect runs a command on a direct connection. It returns the process if the
// host was sent its result, and so must have it before it can be forgotten.
func (c *call) execDirect(e *wire.Exec) (*process, error) {
	switch {
	case e.Background, !c.unbound && (e.Stdin || e.TTY != nil):
		return nil, wire.Fail(wire.CodeInvalid, "a direct connection only runs commands in the foreground, without input")
	case e.Stdin || e.TTY != nil:
		if err := c.exec(e); err != nil {
			return nil, err
		}
		return nil, errStreamed
	}
	return c.shortExec(e)
}

// shortExec runs a command without input. One that is not over soon is streamed
// from then on: over this connection if it has no parent, else over a stream of
// the parent, to which the host attaches.
func (c *call) shortExec(e *wire.Exec) (*process, error) {
	p, err := c.server.begin(e, c.wire)
	if err != nil {
		return nil, err
	}
	over, err := c.server.awaitShortExec(p)
	switch {
	case err != nil:
		return nil, err
	case over || p.isEnding():
		return p, c.sendAll(p)
	case c.unbound:
		return nil, errors.Join(c.follow(p, nil), errStreamed)
	}
	c.server.awaitReattach(p, false)
	return nil, wire.WriteJSON(c.stream, wire.FrameStarted, wire.Started{PID: p.pid})
}

// awaitReattach gives the host of a direct connection, which broke or streams no further,
// time to attach to the process; none if the connection had no parent. A host that has
// attached already keeps it.
func (s *server) awaitReattach(p *process, unbound bool) {
	left, ok := p.out.unread()
	switch {
	case !ok:
	case unbound || p.resultUnwanted.Load(): // read after unread, as end sets it before it calls hasReader
		s.endUnlessAttached(p, left, 0)
	default:
		s.endUnlessAttached(p, left, s.reattach)
	}
}

// hangupCheck is how long a process may leave its input unread before it is
// checked whether its host is still connected, and how often from then on.
const hangupCheck = 500 * time.Millisecond

// giveInput writes input to the process, until the host leaves. On a direct
// connection reading does not show that while the process leaves earlier input
// unread.
func (c *call) giveInput(p *process, owner int, input []byte) bool {
	conn, ok := c.stream.(*socket.Conn)
	if !c.unbound || !ok {
		return p.stdio.write(owner, input)
	}
	given := make(chan struct{})
	defer close(given)
	defer time.AfterFunc(hangupCheck, func() { interruptOnHangup(p, conn, given) }).Stop()
	return p.stdio.write(owner, input)
}

// interruptOnHangup ends a write of input when the host has left.
func interruptOnHangup(p *process, conn *socket.Conn, given <-chan struct{}) {
	for !conn.PeerClosed() {
		select {
		case <-given:
			return
		case <-time.After(hangupCheck):
		}
	}
	p.stdio.takeInput()
}

// awaitShortExec waits for the end of the process. If it returns false, the process
// is supervised from now on; with an error, it did not start.
func (s *server) awaitShortExec(p *process) (over bool, err error) {
	crowd := s.shortExecs.Add(1)
	defer s.shortExecs.Add(-1)
	s.procs.RaiseIf(crowd > busyShortExecs)
	defer s.procs.ReleaseIf(crowd > busyShortExecs)
	pause := firstDrainAfter * time.Duration(1+crowd/busyShortExecs)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case end := <-p.main:
			if err := s.settle(p, p.child.Result()); err != nil {
				return false, err
			}
			if p.finishIfDone(end) {
				return true, nil
			}
			p.main <- end
			return false, s.superviseLong(p)
		case <-p.ending:
			return false, s.superviseLong(p)
		case <-timer.C:
		}
		if p.drainPipes() == drainedTooMuch || time.Since(p.started) >= p.shortExecTimeout() {
			return false, s.superviseLong(p)
		}
		timer.Reset(pause)
		pause *= 2
	}
}

// superviseLong supervises a command that is not short. Its score for the OOM
// killer is set only here: a short one uses no memory for long.
func (s *server) superviseLong(p *process) error {
	if err := s.confirm(p); err != nil {
		return err
	}
	p.tree.PreferForOOM()
	p.supervise()
	return nil
}

// shortExecTimeout is how long the process may take as a short command.
func (p *process) shortExecTimeout() time.Duration {
	if stdout, stderr := p.out.totals(); stdout+stderr > 0 {
		return shortExecTimeAfterOutput
	}
	if p.timeout > 0 {
		return min(shortExecTime, p.timeout)
	}
	return shortExecTime
}

// finishIfDone finishes a process that has ended, if nothing of it is left.
func (p *process) finishIfDone(end proc.Exit) bool {
	if p.isEnding() || p.endTree && !end.Childless && !p.tree.SignalAndCheck(0) || p.drainPipes() != drainedAll {
		return false
	}
	if !p.endTree && !end.Childless {
		p.tree.PreferForOOM() // what it left behind
	}
	p.stdio.closePipes()
	p.finish(end, false, false)
	return true
}

func (p *process) isEnding() bool {
	why, _ := p.endReason()
	return why != byItself
}

// writers join the frames of an answer into one write.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 2<<10) }}

// sendAll sends the output of a process and its exit, for which it waits if the
// process is ending. A host that did not receive it may attach.
func (c *call) sendAll(p *process) error {
	reader, ok := p.out.attachFirst()
	if !ok {
		return errNotReader
	}
	defer p.out.detach(reader)
	w := writers.Get().(*bufio.Writer)
	w.Reset(c.stream)
	defer writers.Put(w)
	for {
		more, err := p.out.await(reader)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := sendOutput(w, func(b []byte) (outputPart, error) { return p.out.take(reader, b) }); err != nil {
			return err
		}
	}
	<-p.done
	if err := wire.WriteJSON(w, wire.FrameExit, p.exit); err != nil {
		return err
	}
	return w.Flush()
}
