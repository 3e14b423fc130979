package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// link is one kind of wire to the guest: it dials when it is needed, and
// again when it broke.
type link struct {
	machine *Machine
	kind    wire.Kind
	turn    chan struct{} // held while looking at or replacing live
	live    *live
}

// What one wire carries at once. Together they stay well below
// wire.MaxStreams, because a stream counts until both sides have closed it.
const (
	maxCommands  = 128
	maxQuestions = 32
)

// live is a wire that was greeted.
type live struct {
	*wire.Session
	boot      string
	version   int           // of the protocol
	commands  chan struct{} // one for each command
	questions chan struct{} // one for each question; who finds none waits

	noted bool // that it broke; whoever has the link's turn may look
}

func newLive(session *wire.Session, welcome *wire.Welcome) *live {
	return &live{Session: session, boot: welcome.Boot, version: welcome.Version, commands: make(chan struct{}, maxCommands), questions: make(chan struct{}, maxQuestions)}
}

// request writes a request, unless this guest would not understand all of it.
func (l *live) request(w io.Writer, req *wire.Request) error {
	if err := wire.Understood(l.version, req); err != nil {
		return err
	}
	return wire.WriteRequest(w, req)
}

// claim makes room for a command, until it is released.
func (l *live) claim() (release func(), err error) {
	select {
	case l.commands <- struct{}{}:
		return func() { <-l.commands }, nil
	default:
		return nil, fmt.Errorf("%w: %d commands run in this sandbox", ErrBusy, maxCommands)
	}
}

// alive reports whether the wire was not seen to end.
func (l *live) alive() bool {
	select {
	case <-l.Done():
		return false
	default:
		return true
	}
}

func newLink(m *Machine, kind wire.Kind) *link {
	return &link{machine: m, kind: kind, turn: make(chan struct{}, 1)}
}

// get returns a wire that lives, as far as is known.
func (l *link) get(ctx context.Context) (*live, error) {
	if err := l.await(ctx); err != nil {
		return nil, err
	}
	defer func() { <-l.turn }()
	if l.live == nil {
		return l.connect(ctx)
	}
	if l.live.alive() {
		return l.live, nil
	}
	broken := l.live
	if !broken.noted {
		broken.noted = true
		l.machine.noteBreak(broken.Err())
	}
	if err := l.machine.usable(); err != nil {
		return nil, err
	}
	fresh, err := l.connect(ctx)
	if err == nil {
		l.machine.aside(func() { l.machine.settle(fresh) })
	}
	return fresh, err
}

// made reports whether it made the first wire, as there was none.
func (l *link) made(ctx context.Context) (bool, error) {
	if err := l.await(ctx); err != nil {
		return false, err
	}
	defer func() { <-l.turn }()
	if l.live != nil {
		return false, nil
	}
	_, err := l.connect(ctx)
	return err == nil, err
}

// await takes the turn, which the caller gives back unless it failed.
func (l *link) await(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.machine.ctx.Done():
		return ErrClosed
	}
	if err := l.machine.usable(); err != nil {
		<-l.turn
		return err
	}
	return nil
}

// connect dials until the guest answers, it is clear that it will not, or
// patience ends.
func (l *link) connect(ctx context.Context) (*live, error) {
	ctx, cancel := context.WithTimeout(ctx, l.machine.options.DialPatience)
	defer cancel()
	defer context.AfterFunc(l.machine.ctx, cancel)()
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		live, err := l.attempt(ctx)
		if err == nil {
			l.live = live
			return live, nil
		}
		if !errors.Is(err, errNotYet) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if l.machine.ctx.Err() != nil {
				return nil, ErrClosed
			}
			return nil, err
		}
	}
}

// errNotYet marks a failure after which dialling again soon makes sense.
var errNotYet = errors.New("not ready")

// attempt dials once, and greets.
func (l *link) attempt(ctx context.Context) (*live, error) {
	conn, err := l.machine.dial(ctx)
	if err != nil {
		return nil, notReached(err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	welcome, err := wire.Greet(conn, &wire.Hello{
		Min: wire.MinVersion, Max: wire.MaxVersion,
		Client: l.machine.options.Client, Epoch: l.machine.nextEpoch(), Kind: l.kind,
	})
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, l.refused(err)
	}
	session, err := wire.HostSession(conn)
	if err != nil {
		conn.Close()
		return nil, lost(err)
	}
	return newLive(session, welcome), nil
}

// notReached judges a dial that failed. A guest that is about to start, or about
// to replace its socket, is not there or refuses; one with too many at its door
// is busy. For anything else the dialer has its reasons.
func notReached(err error) error {
	for _, passing := range []error{fs.ErrNotExist, syscall.ECONNREFUSED, syscall.EAGAIN} {
		if errors.Is(err, passing) {
			return fmt.Errorf("%w: %w: %w", ErrLost, errNotYet, err)
		}
	}
	return lost(err)
}

// refused judges a handshake that failed.
func (l *link) refused(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrLost, reported(e))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) { // stopped or paused, perhaps
		return lost(err)
	}
	l.machine.noteBreak(err)
	if err := l.machine.usable(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w: %w", ErrLost, errNotYet, err)
}

func (l *link) close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.live != nil {
		_ = l.live.Close()
		l.live = nil
	}
}
