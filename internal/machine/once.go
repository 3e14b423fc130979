package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// watchAfter is when somebody stands by to end a command that has said nothing
// yet, or to notice that the guest is silent. Many commands are over by then, and
// to stand by takes threads.
const watchAfter = 10 * time.Millisecond

// errNotOnce is a guest that does not know wires for one command. It has started
// nothing.
var errNotOnce = fmt.Errorf("%w: a wire for one command", ErrUnsupported)

// once runs the command over a wire of its own. The guest ends it with the wire,
// so a wire that breaks is not made anew.
func (r *execCall) once(ctx context.Context) (*wire.Exit, error) {
	if err := errors.Join(r.machine.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	conn, err := r.openOnce(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	frames := wire.NewReader(conn)
	over := make(chan struct{})
	defer close(over)
	later := time.AfterFunc(watchAfter, func() { r.watchOnce(ctx, conn, over) })
	defer later.Stop()
	heard := func() { // output was shown: start the cancellation watcher now
		_ = ctx.Done() // a context that starts its watcher at the first Done
		if later.Stop() {
			go r.watchOnce(ctx, conn, over)
		}
	}
	if err := r.beginOnce(conn, frames); err != nil {
		return nil, err
	}
	for {
		exit, err := r.nextOnce(conn, frames, heard)
		if exit != nil || err != nil {
			return exit, err
		}
	}
}

// openOnce asks for the command on a connection of its own.
func (r *execCall) openOnce(ctx context.Context) (net.Conn, error) {
	conn, err := r.machine.dial(ctx)
	if err != nil {
		return nil, errNotOnce // the retrying path reports the dial error
	}
	if err := wire.OpenOnce(conn, r.machine.options.Client, r.command.request(r.id).Exec); err != nil {
		_ = conn.Close()
		return nil, openFailure(err)
	}
	return conn, nil
}

// openFailure judges a request that was not sent: it is too large, or the guest
// did not want to hear it.
func openFailure(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return fromWire(e)
	}
	return errNotOnce
}

// beginOnce waits for the guest to say that the command runs. Only then is its
// input read: an older guest hangs up without a word.
func (r *execCall) beginOnce(conn net.Conn, frames *wire.Reader) error {
	frame, err := frames.Frame()
	switch {
	case errors.Is(err, wire.ErrProtocol):
		return r.machine.markBroken(err)
	case err != nil && r.machine.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(err, net.ErrClosed): // by us: who knows what the guest has started
		return asLost(err)
	case err != nil:
		return errNotOnce
	case frame.Type == wire.FrameStarted:
		r.input.send(conn, 0)
		return nil
	case frame.Type != wire.FrameError:
		return r.machine.markBroken(fmt.Errorf("%w: a command that has not started sends frame %d", wire.ErrProtocol, frame.Type))
	}
	err = r.refusal(frame)
	if errors.Is(err, ErrUnsupported) || errors.Is(err, errExists) { // what exists is attached to
		return errNotOnce
	}
	return err
}

// nextOnce passes the next frame on, after it has said that something comes. It
// returns the exit, if that is it.
func (r *execCall) nextOnce(conn net.Conn, frames *wire.Reader, heard func()) (*wire.Exit, error) {
	frame, err := frames.Frame()
	switch {
	case errors.Is(err, wire.ErrProtocol):
		return nil, r.machine.markBroken(err)
	case err != nil && r.machine.ctx.Err() != nil:
		return nil, ErrClosed
	case err != nil:
		return nil, asLost(err)
	case frame.Type == wire.FrameExit:
		exit, err := frame.Exit()
		if err != nil {
			return nil, r.machine.markBroken(err)
		}
		return exit, nil
	case frame.Type == wire.FrameError:
		return nil, r.refusal(frame)
	case frame.Type == wire.FrameStarted:
		return nil, r.machine.markBroken(fmt.Errorf("%w: the command has started twice", wire.ErrProtocol))
	}
	heard()
	if err := r.handleFrame(frame, conn); errors.Is(err, wire.ErrProtocol) {
		return nil, r.machine.markBroken(err)
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// refusal is what the guest says instead of a result.
func (r *execCall) refusal(frame wire.Frame) error {
	var e wire.Error
	if err := frame.Decode(&e); err != nil {
		return r.machine.markBroken(err)
	}
	return fromWire(&e)
}

// endOnce has the guest end the command, which then sends its exit. One that
// does not loses its wire. It may be asked before it has got round to starting
// the command.
func (r *execCall) endOnce(conn net.Conn, over <-chan struct{}) {
	q := r.endCall()
	ctx, cancel := context.WithTimeout(r.machine.ctx, q.timeout)
	defer cancel()
	err := r.machine.call(ctx, q, &struct{}{})
	for errors.Is(err, ErrNoProcess) && ctx.Err() == nil {
		select {
		case <-over:
			return
		case <-time.After(startRetry):
			err = r.machine.call(ctx, q, &struct{}{})
		}
	}
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(endTimeout))
}

// watchOnce ends the command if it is to end, and makes sure from time to time
// that the guest lives: a command may be silent for long. A guest that does not
// answer is given time: it may be paused.
func (r *execCall) watchOnce(ctx context.Context, conn net.Conn, over <-chan struct{}) {
	for heard := time.Now(); ; {
		select {
		case <-over:
			return
		case <-ctx.Done():
			r.endOnce(conn, over)
			return
		case <-r.machine.ctx.Done():
			_ = conn.Close()
			return
		case <-time.After(wire.KeepAlive):
		}
		switch err := r.ping(ctx); {
		case err == nil:
			heard = time.Now()
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(heard) < reattachTimeout:
		case ctx.Err() == nil:
			_ = conn.Close()
			return
		}
	}
}

// ping asks whether the guest lives. Silence is os.ErrDeadlineExceeded: of a wire
// that was lost, as it may have been for silence, it takes another to tell.
func (r *execCall) ping(ctx context.Context) error {
	asked, cancel := context.WithTimeoutCause(ctx, wire.WriteTimeout, os.ErrDeadlineExceeded)
	defer cancel()
	err := r.machine.Ping(asked)
	if errors.Is(err, ErrLost) {
		err = r.machine.Ping(asked)
	}
	if err != nil && errors.Is(context.Cause(asked), os.ErrDeadlineExceeded) {
		return context.Cause(asked)
	}
	return err
}
