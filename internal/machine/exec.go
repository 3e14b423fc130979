package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// endTimeout is how long a guest has to end a command, beyond its grace.
	endTimeout = 4 * time.Second
	// reattachTimeout is how long a guest that has a command may not answer. It is
	// less than the time after which a guest ends a command without a host.
	reattachTimeout = 45 * time.Second
	// transportTimeout is the same for a guest that a transport leads to, which can be away
	// for longer: see Transport.
	transportTimeout = 2 * time.Minute
	// startRetry is when the end of a command is requested again that had not
	// started.
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
	if err == nil && exit.Terminated {
		return nil, fmt.Errorf("%w: %w", ErrLost, ErrTerminated)
	}
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
	sentAt      time.Time // when the guest may first have received it
	directTried bool      // over a direct connection; a second attempt takes a stream
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
			request = r.command.request(r.id) // a guest keeps it longer: it never arrived
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

// attempt sends a request once, over a direct connection or a stream.
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

// expired reports whether ctx has ended. Its timer may fire slightly after the
// deadline, on which deadlines of connections have acted; then it waits for Done.
func expired(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// connectSameBoot returns a wire to the guest that has the command. A guest that
// does not answer has some time: it may be paused, or the way to it interrupted.
func (r *execCall) connectSameBoot(ctx context.Context) (*wireConn, error) {
	wc, err := r.machine.control.get(ctx)
	begin, patience := time.Now(), patienceFor(err)
	for r.boot != "" && patienceFor(err) > 0 && time.Since(begin) < patience {
		wc, err = r.machine.control.get(ctx)
		patience = max(patience, patienceFor(err)) // a transport that has just come back is slow
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

// patienceFor is how long a wire may be lost with err.
func patienceFor(err error) time.Duration {
	switch {
	case errors.Is(err, ErrTransport):
		return transportTimeout
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reattachTimeout
	}
	return 0
}

// execOnStream starts the command, or attaches to it, over a stream of one wire.
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

// dialFailure is a failure to get a wire.
type dialFailure struct{ error }

func (u *dialFailure) Unwrap() error { return u.error }

// result converts an exit, with the outputs as they were passed on.
func (r *execCall) result(x *wire.Exit) *Result {
	result := resultOf(x)
	result.Stdout, result.Stderr = r.outputs[0].summary(x.Stdout), r.outputs[1].summary(x.Stderr)
	return result
}

// resize sends the terminal every size that the caller sends.
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
