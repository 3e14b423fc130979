package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// wireDialer keeps one wire of a kind to the guest: it dials when the wire is
// first used, and again when it broke.
type wireDialer struct {
	machine *Machine
	kind    wire.Kind
	lock    chan struct{} // guards current
	current *wireConn
}

// What one wire carries at once. Together they stay well below
// wire.MaxStreams, because a stream counts until both sides have closed it.
const (
	maxCommands = 128
	maxCalls    = 32
)

// wireConn is a wire after its handshake.
type wireConn struct {
	*wire.Mux
	conn     net.Conn // below Mux
	boot     string
	features wire.Features
	recreate string        // see Options.Recreate
	commands chan struct{} // one for each command
	calls    chan struct{} // one for each UnaryCall; further ones wait

	breakCounted bool // its end was counted; guarded by the dialer's lock
}

func (l *wireDialer) newWireConn(mux *wire.Mux, conn net.Conn, welcome *wire.Welcome) *wireConn {
	return &wireConn{
		Mux: mux, conn: conn, boot: welcome.Boot, features: welcome.Features, recreate: l.machine.options.Recreate,
		commands: make(chan struct{}, maxCommands), calls: make(chan struct{}, maxCalls),
	}
}

// writeRequest writes a request, unless this guest would not understand all of it.
func (l *wireConn) writeRequest(w io.Writer, req *wire.Request) error {
	if err := wire.CheckFeatures(l.features, req); err != nil {
		e := wire.AsError(err)
		return wire.Fail(e.Code, e.Message+": recreate the sandbox with "+l.recreate)
	}
	return wire.WriteRequest(w, req)
}

// reserveCommand makes room for a command, until it is released.
func (l *wireConn) reserveCommand() (release func(), err error) {
	select {
	case l.commands <- struct{}{}:
		return func() { <-l.commands }, nil
	default:
		return nil, fmt.Errorf("%w: %d commands run in this sandbox", ErrBusy, maxCommands)
	}
}

// alive reports whether the wire has not ended, as far as is known.
func (l *wireConn) alive() bool {
	select {
	case <-l.Done():
		return false
	default:
		return true
	}
}

func newWireDialer(m *Machine, kind wire.Kind) *wireDialer {
	return &wireDialer{machine: m, kind: kind, lock: make(chan struct{}, 1)}
}

// get returns a wire that is alive, as far as is known.
func (l *wireDialer) get(ctx context.Context) (*wireConn, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	defer func() { <-l.lock }()
	if l.current == nil {
		return l.connect(ctx)
	}
	if l.current.alive() {
		return l.current, nil
	}
	broken := l.current
	if !broken.breakCounted {
		broken.breakCounted = true
		l.countBreak(broken)
	}
	if err := l.machine.usable(); err != nil {
		return nil, err
	}
	fresh, err := l.connect(ctx)
	if err == nil {
		l.machine.goBackground(func() { l.machine.sendAcks(fresh) })
	}
	return fresh, err
}

// countBreak counts a wire that broke, unless its transport was lost and the guest kept
// to the protocol.
func (l *wireDialer) countBreak(broken *wireConn) {
	why := broken.Err()
	if why == nil && transportErr(broken.conn) != nil {
		return
	}
	if why == nil {
		why = endErr(broken.conn)
	}
	l.machine.countBreak(why)
}

// connectFirst dials if there was no wire yet, and reports whether it did.
func (l *wireDialer) connectFirst(ctx context.Context) (bool, error) {
	if err := l.acquire(ctx); err != nil {
		return false, err
	}
	defer func() { <-l.lock }()
	if l.current != nil {
		return false, nil
	}
	_, err := l.connect(ctx)
	return err == nil, err
}

// acquire takes the lock, which the caller releases unless it failed.
func (l *wireDialer) acquire(ctx context.Context) error {
	select {
	case l.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.machine.ctx.Done():
		return ErrClosed
	}
	if err := l.machine.usable(); err != nil {
		<-l.lock
		return err
	}
	return nil
}

// connect dials until the guest answers, a failure is final, or DialTimeout
// ends.
func (l *wireDialer) connect(ctx context.Context) (*wireConn, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, l.machine.options.DialTimeout)
	defer cancel()
	defer context.AfterFunc(l.machine.ctx, cancel)()
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		wc, err := l.attempt(ctx)
		if err == nil {
			l.current = wc
			return wc, nil
		}
		if caller.Err() != nil { // which may be why the attempt failed
			return nil, fmt.Errorf("%w: %w", caller.Err(), err)
		}
		if !errors.Is(err, errRetryDial) {
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

// errRetryDial marks a failure after which dialling again soon makes sense.
var errRetryDial = errors.New("not ready")

// attempt dials once, and performs the handshake.
func (l *wireDialer) attempt(ctx context.Context) (*wireConn, error) {
	conn, err := l.machine.dial(ctx)
	if err != nil {
		return nil, dialError(err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	welcome, err := wire.Handshake(conn, l.machine.helloOn(conn, l.kind))
	if !unwatch() && err == nil { // it was slow, and is not the guest's fault
		err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, ctx.Err())
	}
	if err != nil {
		lost := transportErr(conn)
		if ended := endErr(conn); ended != nil {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		conn.Close()
		if lost != nil {
			return nil, fmt.Errorf("%w: %w: %w: %w", ErrLost, ErrTransport, errRetryDial, lost)
		}
		return nil, l.handshakeError(err)
	}
	session, err := wire.HostMux(conn)
	if err != nil {
		conn.Close()
		return nil, asLost(err)
	}
	return l.newWireConn(session, conn, welcome), nil
}

// dialError classifies a failed dial. A guest that is about to start, or to replace
// its socket, is missing or refuses, and one whose backlog is full is busy: those
// are retried, as is a transport that is away. Anything else is final.
func dialError(err error) error {
	for _, passing := range []error{fs.ErrNotExist, syscall.ECONNREFUSED, syscall.EAGAIN, ErrTransport} {
		if errors.Is(err, passing) {
			return fmt.Errorf("%w: %w: %w", ErrLost, errRetryDial, err)
		}
	}
	return asLost(err)
}

// handshakeError classifies a failed handshake.
func (l *wireDialer) handshakeError(err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrLost, GuestError(e))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) { // stopped or paused, perhaps
		return asLost(err)
	}
	l.machine.countBreak(err)
	if err := l.machine.usable(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w: %w", ErrLost, errRetryDial, err)
}

func (l *wireDialer) close() {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	if l.current != nil {
		_ = l.current.Close()
		l.current = nil
	}
}
