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
	// endPatience is how long a guest has to end a command, beyond its grace.
	endPatience = 4 * time.Second
	// reattachPatience is how long a guest is waited for that has a command. It
	// is less than the guest waits for its host before it ends and forgets it.
	reattachPatience = 45 * time.Second
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
	r := newRun(m, command)
	defer r.input.stop()
	watched := ctx
	if command.Timeout > 0 {
		var cancel context.CancelFunc
		watched, cancel = context.WithTimeoutCause(ctx, command.Timeout+command.grace()+endPatience, errOverdue)
		defer cancel()
	}
	exit, err := r.follows(watched)
	if err == nil {
		return r.result(exit), ctx.Err()
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return nil, err
}

// run is one command under way.
type run struct {
	machine *Machine
	command *Command
	id      string
	boot    string    // of the guest that has it
	sent    time.Time // when the guest may first have got it
	tried   bool      // over a direct wire: a guest that breaks them gets no second one
	outputs [2]*outlet
	input   *input
}

func newRun(m *Machine, command *Command) *run {
	return &run{
		machine: m, command: command, id: cmp.Or(command.ID, wire.NewID()),
		outputs: [2]*outlet{newOutlet(command.Stdout, command.OutputLimit), newOutlet(command.Stderr, command.OutputLimit)},
		input:   newInput(command.Stdin),
	}
}

// follows starts the command and follows it to its end.
func (r *run) follows(ctx context.Context) (*wire.Exit, error) {
	if r.machine.options.Once && r.command.TTY == nil {
		exit, err := r.once(ctx)
		if errors.Is(err, errNotOnce) && expired(ctx) {
			return nil, lost(context.Cause(ctx)) // whoever gave up does not begin anew
		}
		if errors.Is(err, ErrLost) && r.machine.options.Kill != nil && expired(ctx) {
			return nil, r.giveUp(ctx, err) // else the end of its wire has to do
		}
		if !errors.Is(err, errNotOnce) {
			return exit, err
		}
	}
	return r.attend(ctx)
}

// attend follows the command over as many wires as it takes.
func (r *run) attend(ctx context.Context) (*wire.Exit, error) {
	request := r.command.request(r.id)
	var away *unreached
	for {
		exit, err := r.try(ctx, request)
		switch {
		case err == nil:
			return exit, nil
		case errors.As(err, &away):
			if !r.sent.IsZero() && expired(ctx) {
				return nil, r.giveUp(ctx, lost(away.error))
			}
			return nil, away.error
		case expired(ctx):
			return nil, r.giveUp(ctx, err)
		case errors.Is(err, ErrNoProcess) && time.Since(r.sent) < reattachPatience:
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

// try makes one attempt at a request, over a direct wire or a stream.
func (r *run) try(ctx context.Context, request *wire.Request) (*wire.Exit, error) {
	if l := r.line(ctx, request); l != nil {
		return r.brief(ctx, l, request)
	}
	live, err := r.reach(ctx)
	if err != nil {
		return nil, &unreached{err}
	}
	return r.follow(ctx, live, request)
}

// expired reports whether ctx has ended. Others look at its deadline and not at
// it, and may have acted a moment before it knows itself.
func expired(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// reach finds a wire to the guest that has the command. A guest that has it and
// does not answer is given time: it may be paused.
func (r *run) reach(ctx context.Context) (*live, error) {
	live, err := r.machine.control.get(ctx)
	for deadline := time.Now().Add(reattachPatience); r.boot != "" && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline); {
		live, err = r.machine.control.get(ctx)
	}
	if err != nil {
		return nil, err
	}
	if r.boot != "" && live.boot != r.boot {
		return nil, fmt.Errorf("%w: it was restarted while a command ran", ErrLost)
	}
	r.boot = live.boot
	return live, nil
}

// follow passes everything on, over one wire.
func (r *run) follow(ctx context.Context, live *live, request *wire.Request) (*wire.Exit, error) {
	release, err := live.claim()
	if err != nil {
		return nil, err
	}
	defer release()
	if r.sent.IsZero() {
		r.sent = time.Now()
	}
	stream, err := open(live, request)
	if err != nil {
		return nil, r.machine.because(live, err)
	}
	defer stream.Close()
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() { r.end(live, over) })
	defer stop()
	if request.Op == wire.OpExec {
		r.input.send(stream, 0)
	}
	if r.command.Resize != nil {
		resizing, stopResizing := context.WithCancel(ctx)
		defer stopResizing()
		go r.resize(resizing, live)
	}
	return r.read(&way{live: live, conn: stream, frames: wire.NewReader(stream)})
}

// way is what frames of a command come over: a stream, or a direct wire.
type way struct {
	live   *live
	conn   net.Conn
	frames *wire.Reader
	direct bool
}

// broke judges a way that failed. A stream takes its wire with it; for a direct
// wire the wire that it belongs to goes on.
func (r *run) broke(w *way, err error) error {
	if w.direct && w.live.alive() && r.machine.ctx.Err() == nil && !errors.Is(err, wire.ErrProtocol) {
		if e, ok := errors.AsType[*wire.Error](err); ok {
			return reported(e)
		}
		return lost(err)
	}
	return r.machine.because(w.live, err)
}

// read passes frames on until the exit.
func (r *run) read(w *way) (*wire.Exit, error) {
	for {
		frame, err := w.frames.Frame()
		if err != nil {
			return nil, r.broke(w, err)
		}
		switch {
		case frame.Type == wire.FrameExit:
			exit, err := frame.Exit()
			if err != nil {
				return nil, r.machine.cut(w.live, err)
			}
			r.machine.finish(r.id, w.live)
			return exit, nil
		case frame.Type == wire.FrameError:
			return nil, r.machine.guestSays(w.live, frame)
		case frame.Type == wire.FrameStarted && w.direct:
			return nil, errMoved
		}
		if err := r.take(frame, w.conn); errors.Is(err, wire.ErrProtocol) {
			return nil, r.machine.cut(w.live, err)
		} else if err != nil {
			w.conn.Close() // nobody reads what is still to come
			r.end(w.live, nil)
			return nil, err
		}
	}
}

// take handles a frame that is not the last.
func (r *run) take(frame wire.Frame, stream net.Conn) error {
	switch frame.Type {
	case wire.FrameStarted:
		return r.begin(frame, stream)
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
		return r.outputs[gap.Stream-wire.FrameStdout].skip(gap.Bytes)
	}
	return fmt.Errorf("%w: frame %d in the output of a command", wire.ErrProtocol, frame.Type)
}

// begin goes on with the input, over a new wire, where the process has got to.
func (r *run) begin(frame wire.Frame, stream net.Conn) error {
	var started wire.Started
	if err := frame.Decode(&started); err != nil {
		return err
	}
	r.input.send(stream, started.Stdin)
	return nil
}

// unreached is why there is no wire.
type unreached struct{ error }

func (u *unreached) Unwrap() error { return u.error }

// end has the guest end the command. A guest that does not loses its wire, and
// so does one that says it did and owes the result. It may be asked before it
// has got round to starting the command.
func (r *run) end(live *live, over <-chan struct{}) {
	q := r.endQuestion()
	q.Target.Forget = over == nil
	for deadline := time.Now().Add(q.patience); ; {
		err := r.machine.askOn(context.Background(), live, q, &struct{}{})
		if over == nil || errors.Is(err, ErrLost) {
			return
		}
		pause := startRetry
		if !errors.Is(err, ErrNoProcess) {
			pause = endPatience
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			_ = live.Close()
			return
		}
	}
}

func (r *run) endQuestion() *question {
	grace := r.command.grace()
	return &question{
		Request:  &wire.Request{Op: wire.OpEnd, Target: &wire.Target{ID: r.id, GraceMs: milliseconds(grace)}},
		patience: grace + endPatience,
	}
}

// giveUp is called when a command is to end and its wire is gone. It is ended
// over a new one; if that fails too, the sandbox is killed from outside, if there
// is a way.
func (r *run) giveUp(ctx context.Context, err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.command.grace()+endPatience)
	defer cancel()
	if r.endAnew(ctx) {
		return err
	}
	if errors.Is(cause, errOverdue) {
		err = lost(errors.Join(cause, err))
	}
	if kill := r.machine.options.Kill; kill != nil {
		r.machine.options.Log.Warn("the guest does not end a command: killing the sandbox", "error", err)
		err = errors.Join(err, kill(context.WithoutCancel(ctx)))
	}
	return err
}

// endAnew ends the command over a new wire, or as many as that takes, and
// reports whether it is gone.
func (r *run) endAnew(ctx context.Context) bool {
	q := r.endQuestion()
	q.Target.Forget = true
	for {
		live, err := r.reach(ctx)
		if err == nil {
			err = r.machine.askOn(ctx, live, q, &struct{}{})
		}
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err == nil || errors.Is(err, ErrNoProcess)
		}
	}
}

// result believes of an exit what is possible.
func (r *run) result(x *wire.Exit) *Result {
	result := resultOf(x)
	result.Stdout, result.Stderr = r.outputs[0].account(x.Stdout), r.outputs[1].account(x.Stderr)
	return result
}

// resize tells the terminal every size that the caller sends.
func (r *run) resize(ctx context.Context, live *live) {
	for {
		select {
		case size, ok := <-r.command.Resize:
			if !ok {
				return
			}
			req := &wire.Request{Op: wire.OpResize, Target: &wire.Target{ID: r.id, Size: &wire.Size{Rows: size.Rows, Cols: size.Cols}}}
			_ = r.machine.askOn(ctx, live, &question{Request: req}, &struct{}{})
		case <-ctx.Done():
			return
		}
	}
}
