package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// endTimeout is how long a guest has to end a command, beyond its grace.
	endTimeout = 4 * time.Second
	// reattachTimeout is how long a guest is waited for that has a command. It
	// is less than the guest waits for its host before it ends and forgets it.
	reattachTimeout = 45 * time.Second
	// startRetry is how soon a command is ended again that was not there yet.
	startRetry = 20 * time.Millisecond
)

// errOverdue ends a command that the guest should have ended by itself.
var errOverdue = errors.New("the guest did not end the command in time")

// Exec runs a command and waits for its end. Cancelling ctx ends the command
// and all its descendants in the sandbox; then the error is ctx's, beside the
// result if there is one. A command that ran into its Timeout is a result, not
// an error. If the wire breaks, the command goes on and is found again.
//
// A Read of Stdin that is under way when the command ends is not waited for.
func (m *Machine) Exec(ctx context.Context, command *Command) (*Result, error) {
	if err := command.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := newExecCall(m, command)
	defer r.input.stop()
	watched := ctx
	if command.Timeout > 0 {
		var cancel context.CancelFunc
		watched, cancel = context.WithTimeoutCause(ctx, command.Timeout+command.grace()+endTimeout, errOverdue)
		defer cancel()
	}
	exit, err := r.run(watched)
	if err == nil {
		return r.result(exit), ctx.Err()
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return nil, err
}

// execCall is one command under way.
type execCall struct {
	machine     *Machine
	command     *Command
	id          string
	boot        string    // of the guest that has it
	sentAt      time.Time // when the guest may first have got it
	directTried bool      // over a direct wire: a guest that breaks them gets no second one
	outputs     [2]*outputSink
	input       *input
}

func newExecCall(m *Machine, command *Command) *execCall {
	return &execCall{
		machine: m, command: command, id: cmp.Or(command.ID, wire.NewID()),
		outputs: [2]*outputSink{newOutputSink(command.Stdout, command.OutputLimit), newOutputSink(command.Stderr, command.OutputLimit)},
		input:   newInput(command.Stdin),
	}
}

// run starts the command and follows it to its end.
func (r *execCall) run(ctx context.Context) (*wire.Exit, error) {
	if !r.machine.options.Direct || r.command.TTY != nil {
		return r.execWithRetry(ctx)
	}
	exit, err := r.execUnbound(ctx)
	switch {
	case errors.Is(err, errNoUnbound) && expired(ctx):
		return nil, asLost(context.Cause(ctx)) // a cancelled command is not started again
	case errors.Is(err, errNoUnbound):
		return r.execWithRetry(ctx)
	case errors.Is(err, ErrLost) && r.machine.options.Kill != nil && expired(ctx):
		return nil, r.endOrKill(ctx, err) // without Kill the end of the connection must do
	}
	return exit, err
}

// execWithRetry follows the command over as many wires as it takes.
func (r *execCall) execWithRetry(ctx context.Context) (*wire.Exit, error) {
	request := r.command.request(r.id)
	var away *dialFailure
	for {
		exit, err := r.attempt(ctx, request)
		switch {
		case err == nil:
			return exit, nil
		case errors.As(err, &away):
			if !r.sentAt.IsZero() && expired(ctx) {
				return nil, r.endOrKill(ctx, asLost(away.error))
			}
			return nil, away.error
		case expired(ctx):
			return nil, r.endOrKill(ctx, err)
		case errors.Is(err, ErrNoProcess) && time.Since(r.sentAt) < reattachTimeout:
			request = r.command.request(r.id) // a guest forgets later than that: it never arrived
		case errors.Is(err, ErrNoProcess):
			return nil, fmt.Errorf("%w: it has forgotten the command", ErrLost)
		case errors.Is(err, ErrLost) || errors.Is(err, errExists):
			request = &wire.Request{Op: wire.OpAttach, Attach: &wire.Attach{
				ID: r.id, Stdout: r.outputs[0].offset, Stderr: r.outputs[1].offset,
			}}
		default:
			return nil, err
		}
	}
}

// attempt makes one attempt at a request, over a direct wire or a stream.
func (r *execCall) attempt(ctx context.Context, request *wire.Request) (*wire.Exit, error) {
	if l := r.directConnFor(ctx, request); l != nil {
		return r.execOnDirect(ctx, l, request)
	}
	wc, err := r.connectSameBoot(ctx)
	if err != nil {
		return nil, &dialFailure{err}
	}
	return r.execOnStream(ctx, wc, request)
}

// expired reports whether ctx has ended. Others look at its deadline and not at
// it, and may have acted a moment before it knows itself.
func expired(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// connectSameBoot finds a wire to the guest that has the command. A guest that has it and
// does not answer is given time: it may be paused.
func (r *execCall) connectSameBoot(ctx context.Context) (*wireConn, error) {
	wc, err := r.machine.control.get(ctx)
	for deadline := time.Now().Add(reattachTimeout); r.boot != "" && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline); {
		wc, err = r.machine.control.get(ctx)
	}
	if err != nil {
		return nil, err
	}
	if r.boot != "" && wc.boot != r.boot {
		return nil, fmt.Errorf("%w: it was restarted while a command ran", ErrLost)
	}
	r.boot = wc.boot
	return wc, nil
}

// execOnStream passes everything on, over one wire.
func (r *execCall) execOnStream(ctx context.Context, wc *wireConn, request *wire.Request) (*wire.Exit, error) {
	release, err := wc.reserveCommand()
	if err != nil {
		return nil, err
	}
	defer release()
	if r.sentAt.IsZero() {
		r.sentAt = time.Now()
	}
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() { r.requestEnd(wc, over) }) // before open, which a guest can hold
	defer stop()
	stream, err := open(wc, request)
	if err != nil {
		return nil, r.machine.streamError(wc, err)
	}
	defer stream.Close()
	if request.Op == wire.OpExec {
		r.input.send(stream, 0)
	}
	if r.command.Resize != nil {
		resizing, stopResizing := context.WithCancel(ctx)
		defer stopResizing()
		go r.resize(resizing, wc)
	}
	return r.readFrames(&frameSource{wire: wc, conn: stream, frames: wire.NewReader(stream)})
}

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

// resumeInput goes on with the input, over a new wire, where the process has got to.
func (r *execCall) resumeInput(frame wire.Frame, stream net.Conn) error {
	var started wire.Started
	if err := frame.Decode(&started); err != nil {
		return err
	}
	r.input.send(stream, started.Stdin)
	return nil
}

// dialFailure is why there is no wire.
type dialFailure struct{ error }

func (u *dialFailure) Unwrap() error { return u.error }

// requestEnd has the guest end the command. A guest that does not loses its wire, and
// so does one that says it did and owes the result. It may be asked before it
// has got round to starting the command.
func (r *execCall) requestEnd(wc *wireConn, over <-chan struct{}) {
	q := r.endCall()
	q.Target.Forget = over == nil
	for deadline := time.Now().Add(q.Timeout); ; {
		err := r.machine.callOn(context.Background(), wc, q, &struct{}{})
		if over == nil || errors.Is(err, ErrLost) {
			return
		}
		pause := startRetry
		if !errors.Is(err, ErrNoProcess) {
			pause = endTimeout
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			_ = wc.Close()
			return
		}
	}
}

func (r *execCall) endCall() *UnaryCall {
	grace := r.command.grace()
	return &UnaryCall{
		Request: &wire.Request{Op: wire.OpEnd, Target: &wire.Target{ID: r.id, GraceMs: wire.Milliseconds(grace)}},
		Timeout: grace + endTimeout,
	}
}

// endOrKill is called when a command is to end and its wire is gone. It is ended
// over a new one; if that fails too, the sandbox is killed from outside, if there
// is a way.
func (r *execCall) endOrKill(ctx context.Context, err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.command.grace()+endTimeout)
	defer cancel()
	if r.endOnNewWire(ctx) {
		return err
	}
	if errors.Is(cause, errOverdue) {
		err = asLost(errors.Join(cause, err))
	}
	if kill := r.machine.options.Kill; kill != nil {
		r.machine.options.Log.Warn("the guest does not end a command: killing the sandbox", "error", err)
		err = errors.Join(err, kill(context.WithoutCancel(ctx)))
	}
	return err
}

// endOnNewWire ends the command over a new wire, or as many as that takes, and
// reports whether it is gone.
func (r *execCall) endOnNewWire(ctx context.Context) bool {
	q := r.endCall()
	q.Target.Forget = true
	for {
		wc, err := r.connectSameBoot(ctx)
		if err == nil {
			err = r.machine.callOn(ctx, wc, q, &struct{}{})
		}
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err == nil || errors.Is(err, ErrNoProcess)
		}
	}
}

// result believes of an exit what is possible.
func (r *execCall) result(x *wire.Exit) *Result {
	result := resultOf(x)
	result.Stdout, result.Stderr = r.outputs[0].summary(x.Stdout), r.outputs[1].summary(x.Stderr)
	return result
}

// resize tells the terminal every size that the caller sends.
func (r *execCall) resize(ctx context.Context, wc *wireConn) {
	for {
		select {
		case size, ok := <-r.command.Resize:
			if !ok {
				return
			}
			req := &wire.Request{Op: wire.OpResize, Target: &wire.Target{ID: r.id, Size: &wire.Size{Rows: size.Rows, Cols: size.Cols}}}
			_ = r.machine.callOn(ctx, wc, &UnaryCall{Request: req}, &struct{}{})
		case <-ctx.Done():
			return
		}
	}
}
