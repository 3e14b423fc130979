package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// streamedFirst is how many commands go over streams before a direct connection
	// is opened for more: a single command is not worth one.
	streamedFirst = 2
	// minDirectTimeout is the shortest timeout of a command that may take a direct
	// connection, where the guest checks the time less often.
	minDirectTimeout = time.Second
)

// errNotShort is a command that is not over soon: it is to be followed over a
// stream.
var errNotShort = fmt.Errorf("%w: the command runs on", ErrLost)

// directConnFor returns a direct connection for a command that may take one, or
// nil.
func (r *execCall) directConnFor(ctx context.Context, request *wire.Request) *directConn {
	c, m := r.command, r.machine
	fits := request.Op == wire.OpExec && !r.directTried && c.Stdin == nil && c.TTY == nil && (c.Timeout == 0 || c.Timeout >= minDirectTimeout)
	if !fits || m.execs.Add(1) <= streamedFirst || ctx.Err() != nil || m.usable() != nil {
		return nil
	}
	l := m.execConns.idleOrDial()
	if l != nil && r.boot != "" && r.boot != l.parent.boot {
		m.execConns.put(l)
		return nil
	}
	return l
}

// execOnDirect runs the command over a direct connection with a parent.
func (r *execCall) execOnDirect(ctx context.Context, l *directConn, request *wire.Request) (*wire.Exit, error) {
	wc := l.parent
	release, err := wc.reserveCommand()
	if err != nil {
		r.machine.execConns.put(l)
		return nil, err
	}
	defer release()
	r.boot, r.directTried = wc.boot, true
	if r.sentAt.IsZero() {
		r.sentAt = time.Now()
	}
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() { r.requestEnd(wc, over) })
	defer stop()
	w := &frameSource{wire: wc, conn: l.conn, frames: l.frames, direct: true}
	l.ackPending = false // the request acknowledges the last result
	if err := wc.writeRequest(l.conn, request); err != nil {
		r.machine.execConns.discard(l)
		return nil, r.sourceError(w, err)
	}
	exit, err := r.readFrames(w)
	return exit, r.releaseDirect(l, err)
}

// releaseDirect keeps the connection if it can carry another request.
func (r *execCall) releaseDirect(l *directConn, err error) error {
	var said *guestError
	switch {
	case err == nil:
		l.ackPending = true
		r.machine.execConns.put(l)
	case errors.Is(err, ErrUnsupported): // an older guest
		r.machine.execConns.discard(l)
		r.machine.execConns.disable()
		return fmt.Errorf("%w: it cannot be started this way", ErrNoProcess)
	case errors.Is(err, errNotShort) || errors.As(err, &said):
		r.machine.execConns.put(l)
	default:
		r.machine.execConns.discard(l)
	}
	return err
}
