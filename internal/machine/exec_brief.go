package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// warmUp is how many commands go over streams before a direct wire is opened
	// for more: a single command is not worth one.
	warmUp = 2
	// briefTimeout is the shortest timeout of a command that may take a direct
	// wire, where the guest looks at the clock less often.
	briefTimeout = time.Second
)

// errMoved is a command that is not over soon: it is to be followed over a
// stream.
var errMoved = fmt.Errorf("%w: the command runs on", ErrLost)

// line finds a direct wire for a command that may take one.
func (r *run) line(ctx context.Context, request *wire.Request) *line {
	c, m := r.command, r.machine
	fits := request.Op == wire.OpExec && !r.tried && c.Stdin == nil && c.TTY == nil && (c.Timeout == 0 || c.Timeout >= briefTimeout)
	if !fits || m.execs.Add(1) <= warmUp || ctx.Err() != nil || m.usable() != nil {
		return nil
	}
	l := m.briefs.spare()
	if l != nil && r.boot != "" && r.boot != l.parent.boot {
		m.briefs.put(l)
		return nil
	}
	return l
}

// brief runs the command over a direct wire.
func (r *run) brief(ctx context.Context, l *line, request *wire.Request) (*wire.Exit, error) {
	live := l.parent
	release, err := live.claim()
	if err != nil {
		r.machine.briefs.put(l)
		return nil, err
	}
	defer release()
	r.boot, r.tried = live.boot, true
	if r.sent.IsZero() {
		r.sent = time.Now()
	}
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() { r.end(live, over) })
	defer stop()
	w := &way{live: live, conn: l.conn, frames: l.frames, direct: true}
	l.owes = false // the request says so
	if err := live.request(l.conn, request); err != nil {
		r.machine.briefs.discard(l)
		return nil, r.broke(w, err)
	}
	exit, err := r.read(w)
	return exit, r.hangUp(l, err)
}

// hangUp keeps the line if it can go on after what came of the command.
func (r *run) hangUp(l *line, err error) error {
	var said *guestError
	switch {
	case err == nil:
		l.owes = true
		r.machine.briefs.put(l)
	case errors.Is(err, ErrUnsupported): // an older guest
		r.machine.briefs.discard(l)
		r.machine.briefs.forbid()
		return fmt.Errorf("%w: it cannot be started this way", ErrNoProcess)
	case errors.Is(err, errMoved) || errors.As(err, &said):
		r.machine.briefs.put(l)
	default:
		r.machine.briefs.discard(l)
	}
	return err
}
