package machine

import (
	"errors"
	"fmt"
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

// Next reads a frame. An error that the guest reports ends the operation.
func (op *StreamOp) Next() (wire.Frame, error) {
	var frame wire.Frame
	err := op.ReadWithin(func() (err error) { frame, err = op.Frames.Frame(); return err })
	if err != nil {
		return frame, op.ErrorFor(err)
	}
	if frame.Type == wire.FrameError {
		return frame, op.ErrorFrame(frame)
	}
	return frame, nil
}

// ErrorFrame returns the error that a frame holds, after which the guest expects
// no more.
func (op *StreamOp) ErrorFrame(frame wire.Frame) error {
	err := op.machine.errorFrame(op.wire, frame)
	op.Complete = op.SentAll && !errors.Is(err, wire.ErrProtocol)
	return err
}

// Answer reads a frame that must be of a certain type into v.
func (op *StreamOp) Answer(kind wire.FrameType, v any) error {
	frame, err := op.Next()
	if err != nil {
		return err
	}
	if frame.Type != kind {
		return op.UnexpectedFrame(frame)
	}
	return op.Decode(frame, v)
}

// Decode reads a frame's payload into v.
func (op *StreamOp) Decode(frame wire.Frame, v any) error {
	if err := frame.Decode(v); err != nil {
		return op.Broken(err)
	}
	return nil
}

// Broken closes the wire and declares the sandbox broken: err is what no honest
// guest causes.
func (op *StreamOp) Broken(err error) error { return op.machine.protocolError(op.wire, err) }

// UnexpectedFrame is Broken for a frame that must not come here.
func (op *StreamOp) UnexpectedFrame(frame wire.Frame) error {
	return op.Violation("frame %d is out of place", frame.Type)
}

// Violation is Broken for what a guest said and cannot be true.
func (op *StreamOp) Violation(format string, args ...any) error {
	return op.Broken(fmt.Errorf("%w: "+format, append([]any{wire.ErrProtocol}, args...)...))
}

// ErrorFor returns the reason for a failure of the stream.
func (op *StreamOp) ErrorFor(err error) error {
	if err == nil {
		return nil
	}
	if op.ctx.Err() != nil {
		return op.ctx.Err()
	}
	if op.closedByHost.Load() {
		return net.ErrClosed
	}
	if stop, ok := errors.AsType[*wire.Interrupt](err); ok {
		if stop.Type == wire.FrameError {
			return op.ErrorFrame(stop.Frame)
		}
		return op.UnexpectedFrame(stop.Frame)
	}
	if op.conn != nil {
		return op.machine.directError(op.conn, err)
	}
	return op.machine.streamError(op.wire, err)
}

// directError is streamError for a direct connection, whose parent goes on.
func (m *Machine) directError(conn *directConn, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok { // refused on this side
		return GuestError(e)
	}
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(err, wire.ErrProtocol):
		return m.markBroken(err)
	case conn.parent.alive():
		m.countBreak(err)
	}
	return asLost(err)
}
