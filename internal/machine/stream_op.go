package machine

import (
	"bytes"
	"context"
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
	// way, beside the short ones that are calls. Further ones wait.
	maxTransfers = 32
	// MaxWatches bounds the watches of one machine.
	MaxWatches = 16
	// requestSize is what a request about a file usually fits in.
	requestSize = 512
	// frameTimeout is how long a guest may send nothing in the middle of one.
	frameTimeout = 30 * time.Second
	// noTimeout lets a guest send nothing for any time.
	noTimeout = math.MaxInt64
)

// StreamOp is an operation of several messages over a stream or a direct
// connection.
type StreamOp struct {
	Frames *wire.Reader
	// SentAll says that the host has nothing left to send, so that a refusal by
	// the guest leaves a direct connection usable.
	SentAll bool
	// Complete says that both sides have sent everything, so that a direct
	// connection goes back to the pool.
	Complete bool

	machine       *Machine
	ctx           context.Context
	wire          *wireConn
	stream        net.Conn
	timeout       time.Duration
	close         func()      // releases everything once
	detach        func() bool // makes the operation independent of ctx
	conn          *directConn // nil: a stream of wire
	watchdogTimer atomic.Pointer[time.Timer]
	closed        atomic.Bool // nothing waits any more
	closedByHost  atomic.Bool // errors from now on are caused by this side
}

// OpRequest is how a StreamOp begins.
type OpRequest struct {
	Request *wire.Request
	Direct  bool          // take a direct connection if one can be had
	Small   bool          // else a stream of the control wire, not of the bulk wire
	Watch   bool          // count it as one of MaxWatches
	Follow  []byte        // sent in one write with the request
	Timeout time.Duration // how long the guest may send nothing; 0: frameTimeout

	wire  *wireConn     // nil: any
	slots chan struct{} // nil: those of transfers, or of watches
}

// slotsFor returns the semaphore that bounds operations like this one.
func (m *Machine) slotsFor(o *OpRequest) chan struct{} {
	switch {
	case o.slots != nil:
		return o.slots
	case o.Watch:
		return m.watches
	}
	return m.transfers
}

// OpenOp begins an operation. The caller closes it.
func (m *Machine) OpenOp(ctx context.Context, o *OpRequest) (*StreamOp, error) {
	slots := m.slotsFor(o)
	if o.Watch && len(slots) == cap(slots) {
		return nil, fmt.Errorf("%w: %d watches", ErrBusy, MaxWatches)
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, ErrClosed
	}
	op := &StreamOp{machine: m, ctx: ctx, timeout: o.Timeout}
	if op.timeout == 0 {
		op.timeout = frameTimeout
	}
	if err := op.begin(o); err != nil {
		<-slots
		return nil, err
	}
	op.detach = context.AfterFunc(ctx, op.interrupt)
	op.close = sync.OnceFunc(func() {
		op.closedByHost.Store(true)
		op.release(op.detach())
		<-slots
	})
	if err := op.sendRequest(o); err != nil {
		op.Close()
		return nil, err
	}
	return op, nil
}

// Close ends the operation, in whatever state it is. It may be called twice.
func (op *StreamOp) Close() { op.close() }

// begin opens a stream, or takes a direct connection.
func (op *StreamOp) begin(o *OpRequest) error {
	if o.Direct {
		if op.conn = op.machine.fileConns.get(op.ctx); op.conn != nil {
			op.wire, op.stream, op.Frames = op.conn.parent, op.conn.conn, op.conn.frames
			return nil
		}
	}
	dialer := op.machine.bulk
	if o.Small {
		dialer = op.machine.control
	}
	var err error
	if op.wire = o.wire; op.wire == nil {
		if op.wire, err = dialer.get(op.ctx); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(op.ctx, func() { op.watchdogTimer.Store(op.watchdog(0)) })
	defer stop()
	if op.stream, err = op.wire.Open(); err != nil {
		op.closed.Store(true)
		return op.ErrorFor(err)
	}
	op.Frames = wire.NewReader(op.stream)
	return nil
}

// release closes the stream, or gives the direct connection back. Undisturbed
// means that no cancellation has set its deadline.
func (op *StreamOp) release(undisturbed bool) {
	switch {
	case op.conn == nil:
		_ = op.stream.SetDeadline(past)
		timer := op.watchdog(streamCloseTimeout)
		op.stream.Close()
		op.closed.Store(true)
		stopTimer(timer)
		stopTimer(op.watchdogTimer.Load())
	case op.Complete && undisturbed:
		op.machine.fileConns.put(op.conn)
	default:
		op.machine.fileConns.discard(op.conn)
	}
}

// sendRequest sends the request and what follows it in one write.
func (op *StreamOp) sendRequest(o *OpRequest) error {
	message := bytes.NewBuffer(make([]byte, 0, requestSize+len(o.Follow)))
	if err := op.wire.writeRequest(message, o.Request); err != nil {
		return op.ErrorFor(err)
	}
	message.Write(o.Follow)
	op.setDeadline(op.stream.SetWriteDeadline)
	_, err := op.stream.Write(message.Bytes())
	return op.ErrorFor(err)
}

// detachContext lets the operation outlive its context, without a timeout.
func (op *StreamOp) detachContext() {
	op.detach()
	op.ctx, op.timeout = op.machine.ctx, noTimeout
	op.setDeadline(op.stream.SetDeadline)
}

// NoTimeout lets the guest send nothing for any time.
func (op *StreamOp) NoTimeout() {
	op.timeout = noTimeout
	op.extendRead()
}

// interrupt ends all waiting for the guest.
func (op *StreamOp) interrupt() {
	_ = op.stream.SetDeadline(past)
	if op.conn == nil {
		op.watchdogTimer.Store(op.watchdog(0))
	}
}

const (
	// watchdogDelay is how long a read or write may go on after its deadline.
	watchdogDelay = time.Second
	// streamCloseTimeout is how long the end of a stream may wait behind the frames of
	// others, which a guest without processor time reads slowly.
	streamCloseTimeout = 9 * time.Second
)

// watchdog closes the wire if it is not stopped in time. A guest can hold the
// multiplexer in the middle of a frame, where no deadline of a stream counts.
func (op *StreamOp) watchdog(timeout time.Duration) *time.Timer {
	if op.conn != nil || timeout > math.MaxInt64-watchdogDelay {
		return nil
	}
	return time.AfterFunc(timeout+watchdogDelay, func() {
		if !op.closed.Load() {
			_ = op.wire.Close()
		}
	})
}

func stopTimer(timer *time.Timer) {
	if timer != nil {
		timer.Stop()
	}
}

// ReadWithin calls read, which the timeout of the operation interrupts.
func (op *StreamOp) ReadWithin(read func() error) error {
	op.extendRead()
	timer := op.watchdog(op.timeout)
	defer stopTimer(timer)
	return read()
}

// extendRead gives the guest the timeout anew.
func (op *StreamOp) extendRead() { op.setDeadline(op.stream.SetReadDeadline) }

// setDeadline sets a deadline. It does not overrule a cancellation.
func (op *StreamOp) setDeadline(set func(time.Time) error) {
	_ = set(time.Now().Add(op.timeout))
	if op.ctx.Err() != nil {
		_ = set(past)
	}
}

// Deadlines that interrupt what waits, and that let it wait without limit.
var (
	past       = time.Unix(1, 0)
	noDeadline = time.Time{}
)
