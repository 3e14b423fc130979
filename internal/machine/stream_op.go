package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxTransfers bounds the operations on files that one machine has under
	// way, beside the short ones that are questions. Further ones wait.
	maxTransfers = 32
	// requestRoom is what a request about a file usually fits in.
	requestRoom = 512
	// frameTimeout is how long a guest may be silent in the middle of one.
	frameTimeout = 30 * time.Second
	// noTimeout is patience without an end.
	noTimeout = math.MaxInt64
)

// streamOp is an operation that takes more than a question and an answer.
type streamOp struct {
	machine       *Machine
	ctx           context.Context
	wire          *wireConn
	stream        net.Conn
	frames        *wire.Reader
	timeout       time.Duration
	close         func()      // ends the talk, whatever its state; may be called twice
	detach        func() bool // makes it independent of ctx
	conn          *directConn // nil: a stream of live
	watchdogTimer atomic.Pointer[time.Timer]
	closed        atomic.Bool // nothing waits any more
	closedByHost  atomic.Bool // up by this side: whatever fails from now on is its own doing
	sentAll       bool        // nothing is left to send
	complete      bool        // everything was said and heard, so that line can go on
}

// opRequest is how a talk begins.
type opRequest struct {
	dialer  *wireDialer
	direct  bool      // a direct wire would be better
	wire    *wireConn // instead of link: this wire and no other
	request *wire.Request
	slots   chan struct{} // nil: the machine's transfers
	follow  []byte        // sent in one go with the request
	timeout time.Duration // how long the guest may be silent; 0: frameTimeout
}

// openOp begins an operation. The caller hangs up.
func (m *Machine) openOp(ctx context.Context, o *opRequest) (*streamOp, error) {
	slots := o.slots
	if slots == nil {
		slots = m.transfers
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, ErrClosed
	}
	t := &streamOp{machine: m, ctx: ctx, timeout: o.timeout}
	if t.timeout == 0 {
		t.timeout = frameTimeout
	}
	if err := t.begin(o); err != nil {
		<-slots
		return nil, err
	}
	t.detach = context.AfterFunc(ctx, t.interrupt)
	t.close = sync.OnceFunc(func() {
		t.closedByHost.Store(true)
		t.release(t.detach())
		<-slots
	})
	if err := t.sendRequest(o); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// begin opens the stream, or takes a direct wire for one.
func (t *streamOp) begin(o *opRequest) error {
	if o.direct {
		if t.conn = t.machine.fileConns.get(t.ctx); t.conn != nil {
			t.wire, t.stream, t.frames = t.conn.parent, t.conn.conn, t.conn.frames
			return nil
		}
	}
	var err error
	if t.wire = o.wire; t.wire == nil {
		if t.wire, err = o.dialer.get(t.ctx); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(t.ctx, func() { t.watchdogTimer.Store(t.watchdog(0)) })
	defer stop()
	if t.stream, err = t.wire.Open(); err != nil {
		t.closed.Store(true)
		return t.errorFor(err)
	}
	t.frames = wire.NewReader(t.stream)
	return nil
}

// release ends the stream. Undisturbed means that no cancellation got at it.
func (t *streamOp) release(undisturbed bool) {
	switch {
	case t.conn == nil:
		_ = t.stream.SetDeadline(past)
		dog := t.watchdog(0)
		t.stream.Close()
		t.closed.Store(true)
		stopTimer(dog)
		stopTimer(t.watchdogTimer.Load())
	case t.complete && undisturbed:
		t.machine.fileConns.put(t.conn)
	default:
		t.machine.fileConns.discard(t.conn)
	}
}

// sendRequest sends the request and what follows it, in one message.
func (t *streamOp) sendRequest(o *opRequest) error {
	message := bytes.NewBuffer(make([]byte, 0, requestRoom+len(o.follow)))
	if err := t.wire.writeRequest(message, o.request); err != nil {
		return t.errorFor(err)
	}
	message.Write(o.follow)
	t.setDeadline(t.stream.SetWriteDeadline)
	_, err := t.stream.Write(message.Bytes())
	return t.errorFor(err)
}

// detachContext lets the talk go on when its context has ended, for as long as it
// takes.
func (t *streamOp) detachContext() {
	t.detach()
	t.ctx, t.timeout = t.machine.ctx, noTimeout
	t.setDeadline(t.stream.SetDeadline)
}

// interrupt makes whoever waits for the guest wait no longer.
func (t *streamOp) interrupt() {
	_ = t.stream.SetDeadline(past)
	if t.conn == nil {
		t.watchdogTimer.Store(t.watchdog(0))
	}
}

// watchdogDelay is how long after its deadline something may still wait.
const watchdogDelay = time.Second

// watchdog closes the wire if it is not stopped in time. A guest can hold the
// multiplexer in the middle of a frame, where no deadline of a stream counts.
func (t *streamOp) watchdog(patience time.Duration) *time.Timer {
	if t.conn != nil || patience > math.MaxInt64-watchdogDelay {
		return nil
	}
	return time.AfterFunc(patience+watchdogDelay, func() {
		if !t.closed.Load() {
			_ = t.wire.Close()
		}
	})
}

func stopTimer(dog *time.Timer) {
	if dog != nil {
		dog.Stop()
	}
}

// readWithin reads with f, for as long as the guest may be silent.
func (t *streamOp) readWithin(f func() error) error {
	t.extendRead()
	dog := t.watchdog(t.timeout)
	defer stopTimer(dog)
	return f()
}

// extendRead renews the guest's time to answer.
func (t *streamOp) extendRead() { t.setDeadline(t.stream.SetReadDeadline) }

// setDeadline sets a deadline. Whoever cancelled must not be overruled by it.
func (t *streamOp) setDeadline(set func(time.Time) error) {
	_ = set(time.Now().Add(t.timeout))
	if t.ctx.Err() != nil {
		_ = set(past)
	}
}

// Deadlines that free whoever waits, and that let them wait for ever.
var (
	past       = time.Unix(1, 0)
	noDeadline = time.Time{}
)

// next reads a frame. A guest that reports an error ends the talk.
func (t *streamOp) next() (wire.Frame, error) {
	var frame wire.Frame
	err := t.readWithin(func() (err error) { frame, err = t.frames.Frame(); return err })
	if err != nil {
		return frame, t.errorFor(err)
	}
	if frame.Type == wire.FrameError {
		return frame, t.errorFrame(frame)
	}
	return frame, nil
}

// errorFrame is the error in a frame, after which the guest awaits no more.
func (t *streamOp) errorFrame(frame wire.Frame) error {
	err := t.machine.errorFrame(t.wire, frame)
	t.complete = t.sentAll && !errors.Is(err, wire.ErrProtocol)
	return err
}

// answer reads a frame that must be of a certain type into v.
func (t *streamOp) answer(kind wire.FrameType, v any) error {
	frame, err := t.next()
	if err != nil {
		return err
	}
	if frame.Type != kind {
		return t.unexpectedFrame(frame)
	}
	return t.decode(frame, v)
}

func (t *streamOp) decode(frame wire.Frame, v any) error {
	if err := frame.Decode(v); err != nil {
		return t.machine.protocolError(t.wire, err)
	}
	return nil
}

// unexpectedFrame ends the wire over a frame that has no place here.
func (t *streamOp) unexpectedFrame(frame wire.Frame) error {
	return t.violation("frame %d is out of place", frame.Type)
}

// violation ends the wire of a guest that said what cannot be true.
func (t *streamOp) violation(format string, args ...any) error {
	return t.machine.protocolError(t.wire, fmt.Errorf("%w: "+format, append([]any{wire.ErrProtocol}, args...)...))
}

// errorFor finds the reason for a failure of the stream.
func (t *streamOp) errorFor(err error) error {
	if err == nil {
		return nil
	}
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	if t.closedByHost.Load() {
		return net.ErrClosed
	}
	if stop, ok := errors.AsType[*wire.Interrupt](err); ok {
		if stop.Type == wire.FrameError {
			return t.errorFrame(stop.Frame)
		}
		return t.unexpectedFrame(stop.Frame)
	}
	if t.conn != nil {
		return t.machine.directError(t.conn, err)
	}
	return t.machine.streamError(t.wire, err)
}

// directError is because for a direct wire, which breaks alone.
func (m *Machine) directError(l *directConn, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok { // it never left this side
		return fromWire(e)
	}
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(err, wire.ErrProtocol):
		return m.markBroken(err)
	case l.parent.alive():
		m.countBreak(err)
	}
	return asLost(err)
}

// retryOnce performs an operation that does no harm when it is repeated once more
// if its wire turned out to be broken.
func retryOnce(ctx context.Context, f func() error) error {
	err := f()
	if errors.Is(err, ErrLost) && ctx.Err() == nil {
		err = f()
	}
	return err
}
