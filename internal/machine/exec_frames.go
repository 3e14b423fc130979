package machine

import (
	"errors"
	"fmt"
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

// frameSource is what the frames of a command come over: a stream, or a direct
// connection.
type frameSource struct {
	wire     *wireConn // of the stream, or the parent; nil: a direct connection without one
	conn     net.Conn
	frames   *wire.Reader
	direct   bool
	started  bool   // a start was seen; only without a parent
	onOutput func() // nil, or called before each frame of output
}

// checkStart refuses what no honest guest sends on a direct connection without a
// parent: a second start, or, for a command with input, anything but an error
// before the first.
func (w *frameSource) checkStart(t wire.FrameType, input bool) error {
	switch {
	case w.wire != nil:
	case t == wire.FrameStarted && w.started:
		return fmt.Errorf("%w: the command has started twice", wire.ErrProtocol)
	case t == wire.FrameStarted:
		w.started = true
	case input && !w.started && t != wire.FrameError:
		return fmt.Errorf("%w: a command that has not started sends frame %d", wire.ErrProtocol, t)
	}
	return nil
}

// sourceError classifies the failure of a source. A stream takes its wire with
// it; for a direct connection the parent goes on.
func (r *execCall) sourceError(w *frameSource, err error) error {
	if w.wire == nil {
		return r.unboundError(err)
	}
	if w.direct && w.wire.alive() && r.machine.ctx.Err() == nil && !errors.Is(err, wire.ErrProtocol) {
		if e, ok := errors.AsType[*wire.Error](err); ok {
			return GuestError(e)
		}
		return asLost(err)
	}
	return r.machine.streamError(w.wire, err)
}

// violation declares the sandbox broken after what no honest guest sends.
func (r *execCall) violation(w *frameSource, err error) error {
	if w.wire == nil {
		return r.machine.markBroken(err)
	}
	return r.machine.protocolError(w.wire, err)
}

// readFrames passes frames on until the exit.
func (r *execCall) readFrames(w *frameSource) (*wire.Exit, error) {
	for {
		frame, err := w.frames.Frame()
		if err != nil {
			return nil, r.sourceError(w, err)
		}
		if err := w.checkStart(frame.Type, r.input != nil); err != nil {
			return nil, r.violation(w, err)
		}
		switch {
		case frame.Type == wire.FrameExit:
			return r.exitFrame(w, frame)
		case frame.Type == wire.FrameError:
			return nil, r.errorFrame(w, frame)
		case frame.Type == wire.FrameStarted && w.direct && w.wire != nil:
			return nil, errNotShort
		}
		if err := r.passOn(w, frame); err != nil {
			return nil, err
		}
	}
}

// exitFrame returns the exit that a frame holds.
func (r *execCall) exitFrame(w *frameSource, frame wire.Frame) (*wire.Exit, error) {
	var exit wire.Exit
	if err := frame.Decode(&exit); err != nil {
		return nil, r.violation(w, err)
	}
	if w.wire != nil {
		r.machine.noteResult(r.id, w.wire)
	}
	return &exit, nil
}

// errorFrame returns the error that a frame holds.
func (r *execCall) errorFrame(w *frameSource, frame wire.Frame) error {
	var e wire.Error
	if err := frame.Decode(&e); err != nil {
		return r.violation(w, err)
	}
	return GuestError(&e)
}

// passOn handles a frame that is not the last. If its output cannot be written,
// the command is ended; without a parent the end of the connection does that.
func (r *execCall) passOn(w *frameSource, frame wire.Frame) error {
	if w.onOutput != nil && frame.Type != wire.FrameStarted {
		w.onOutput()
	}
	err := r.handleFrame(frame, w.conn)
	switch {
	case errors.Is(err, wire.ErrProtocol):
		return r.violation(w, err)
	case err != nil && w.wire != nil:
		w.conn.Close() // the rest is not read
		r.requestEnd(w.wire, nil)
	}
	return err
}

// handleFrame handles a frame that is not the last.
func (r *execCall) handleFrame(frame wire.Frame, stream net.Conn) error {
	switch frame.Type {
	case wire.FrameStarted:
		return r.resumeInput(frame, stream)
	case wire.FrameStdout, wire.FrameStderr:
		return r.outputs[frame.Type-wire.FrameStdout].write(frame.Payload)
	case wire.FrameGap:
		var gap wire.Gap
		if err := frame.Decode(&gap); err != nil {
			return err
		}
		if gap.Stream != wire.FrameStdout && gap.Stream != wire.FrameStderr {
			return fmt.Errorf("%w: gap in stream %d", wire.ErrProtocol, gap.Stream)
		}
		return r.outputs[gap.Stream-wire.FrameStdout].gap(gap.Bytes)
	}
	return fmt.Errorf("%w: frame %d in the output of a command", wire.ErrProtocol, frame.Type)
}

// resumeInput sends the input from where the process has read it.
func (r *execCall) resumeInput(frame wire.Frame, stream net.Conn) error {
	var started wire.Started
	if err := frame.Decode(&started); err != nil {
		return err
	}
	r.input.send(stream, started.Stdin)
	return nil
}
