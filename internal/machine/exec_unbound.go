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

// watchDelay is when a watcher is started for a command that has written nothing
// yet: to end it when the context does, and to notice a guest that is silent.
// Many commands are over by then, and a watcher needs threads.
const watchDelay = 10 * time.Millisecond

// errNoUnbound is a guest that does not take a command on a direct connection
// without a parent. It has started nothing.
var errNoUnbound = fmt.Errorf("%w: a direct connection without a parent", ErrUnsupported)

// execUnbound runs the command over a direct connection without a parent. The
// guest ends it with the connection, so one that breaks is not replaced.
func (r *execCall) execUnbound(ctx context.Context) (*wire.Exit, error) {
	if err := errors.Join(r.machine.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	pool := r.machine.execConns
	conn, first, err := r.unboundConn(ctx)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	defer close(over)
	later := time.AfterFunc(watchDelay, func() { r.watchUnbound(ctx, conn.conn, over) })
	defer later.Stop()
	if err := r.sendUnbound(conn, first); err != nil {
		pool.discard(conn)
		return nil, err
	}
	source := &frameSource{conn: conn.conn, frames: conn.frames, direct: true, onOutput: func() {
		_ = ctx.Done() // a context may start its own watcher at the first Done
		if later.Stop() {
			go r.watchUnbound(ctx, conn.conn, over)
		}
	}}
	exit, err := r.readFrames(source)
	return exit, r.releaseUnbound(conn, source, err)
}

// unboundConn returns an idle connection, or dials the first.
func (r *execCall) unboundConn(ctx context.Context) (conn *directConn, first bool, err error) {
	if conn = r.machine.execConns.popIdle(); conn != nil {
		return conn, false, nil
	}
	conn, err = r.machine.execConns.dialUnbound(ctx)
	if err != nil && !errors.Is(err, ErrClosed) {
		err = errNoUnbound // the path over streams dials again, and reports the error
	}
	return conn, true, err
}

// sendUnbound sends the request: with the hello if it is the first of its
// connection.
func (r *execCall) sendUnbound(conn *directConn, first bool) error {
	request := r.command.request(r.id)
	if !first {
		err := wire.CheckFeatures(conn.features, request)
		if err == nil {
			err = wire.WriteRequest(conn.conn, request)
		}
		return r.unboundError(err)
	}
	hello := r.machine.helloOn(conn.conn, wire.KindDirect)
	err := wire.OpenDirect(conn.conn, hello, request)
	var welcome *wire.Welcome
	if err == nil {
		welcome, err = wire.ReadWelcome(conn.conn, hello)
	}
	if err != nil {
		return r.notWelcome(err)
	}
	conn.features = welcome.Features
	return nil
}

// notWelcome classifies a failed handshake. A guest without the feature refuses,
// or closes the connection; what else it refuses is reported.
func (r *execCall) notWelcome(err error) error {
	e, refused := errors.AsType[*wire.Error](err)
	switch {
	case refused && (e.Code == wire.CodeVersion || e.Code == wire.CodeNoFeature || e.Code == wire.CodeUnsupported):
		return errNoUnbound
	case refused, errors.Is(err, wire.ErrProtocol), r.machine.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
		return r.unboundError(err)
	}
	return errNoUnbound
}

// unboundError classifies the failure of a direct connection without a parent.
func (r *execCall) unboundError(err error) error {
	e, reported := errors.AsType[*wire.Error](err)
	switch {
	case err == nil:
		return nil
	case reported:
		return GuestError(e)
	case errors.Is(err, wire.ErrProtocol):
		return r.machine.markBroken(err)
	case r.machine.ctx.Err() != nil:
		return ErrClosed
	}
	return asLost(err)
}

// releaseUnbound keeps the connection if the guest reads the next request from
// it: after a result or a refusal of a command that was not streamed.
func (r *execCall) releaseUnbound(conn *directConn, source *frameSource, err error) error {
	var refused *guestError
	if !source.started && (err == nil || errors.As(err, &refused)) {
		r.machine.execConns.put(conn)
	} else {
		r.machine.execConns.discard(conn)
	}
	if errors.Is(err, errExists) { // the path over streams attaches to it
		return errNoUnbound
	}
	return err
}

// endUnbound has the guest end the command, which then sends its exit; a guest
// that does not loses the connection. The request may arrive before the command
// was started, and is then repeated.
func (r *execCall) endUnbound(conn net.Conn, over <-chan struct{}) {
	q := r.endCall()
	ctx, cancel := context.WithTimeout(r.machine.ctx, q.Timeout)
	defer cancel()
	err := r.machine.Call(ctx, q, &struct{}{})
	for errors.Is(err, ErrNoProcess) && ctx.Err() == nil {
		select {
		case <-over:
			return
		case <-time.After(startRetry):
			err = r.machine.Call(ctx, q, &struct{}{})
		}
	}
	if err == nil {
		select {
		case <-over:
			return
		case <-time.After(endTimeout):
		}
	}
	_ = conn.Close()
}

// watchUnbound ends the command when ctx ends, and pings the guest every
// KeepAlive: a command may be silent for long. A guest that does not answer has
// reattachTimeout: it may be paused.
func (r *execCall) watchUnbound(ctx context.Context, conn net.Conn, over <-chan struct{}) {
	for answered := time.Now(); ; {
		select {
		case <-over:
			return
		case <-ctx.Done():
			r.endUnbound(conn, over)
			return
		case <-r.machine.ctx.Done():
			_ = conn.Close()
			return
		case <-time.After(wire.KeepAlive):
		}
		switch err := r.ping(ctx); {
		case err == nil:
			answered = time.Now()
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(answered) < reattachTimeout:
		case ctx.Err() == nil:
			_ = conn.Close()
			return
		}
	}
}

// ping pings the guest. It returns os.ErrDeadlineExceeded on timeout; if the wire
// was lost, perhaps because of that timeout, it retries once on a new one.
func (r *execCall) ping(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, wire.WriteTimeout, os.ErrDeadlineExceeded)
	defer cancel()
	err := r.machine.Ping(limited)
	if errors.Is(err, ErrLost) {
		err = r.machine.Ping(limited)
	}
	if err != nil && errors.Is(context.Cause(limited), os.ErrDeadlineExceeded) {
		return context.Cause(limited)
	}
	return err
}
