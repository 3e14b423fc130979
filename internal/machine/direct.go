package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

const (
	// directIdleTime is how long a direct wire is kept that nobody uses.
	directIdleTime = 30 * time.Second
	// ackDelay is when a guest is told that its result has come, if no request
	// says so before.
	ackDelay = 2 * time.Millisecond
	// closeAckTimeout is how long a guest may take to be told so when the machine closes.
	closeAckTimeout = 20 * time.Millisecond
	// directExecVersion is the version of the protocol whose direct wires take commands.
	directExecVersion = 2
	// redialPause is how long no more are dialled after one could not be had.
	redialPause = time.Second
	// slowDialTime is a dial that costs more than a direct wire saves. Then one is
	// kept, and no more are dialled.
	slowDialTime = 20 * time.Millisecond
)

// directConn is a direct wire: one transfer or command after the other, nothing beside
// it. It ends with its parent.
type directConn struct {
	conn       net.Conn
	frames     *wire.Reader
	parent     *wireConn // which admitted it
	idleTimer  *time.Timer
	ackPending bool // the guest was not told that its result has come
	closed     chan struct{}

	doneWaiting func() // set while somebody has the line: see wire.Mux.Await
}

// acquire gives the line to somebody, who waits for the guest until it is released.
func (l *directConn) acquire() { l.doneWaiting = l.parent.AddWaiter() }

func (l *directConn) release() {
	if l.doneWaiting != nil {
		l.doneWaiting()
		l.doneWaiting = nil
	}
}

// usable reports whether the line can take another transfer.
func (l *directConn) usable() bool { return l.parent.alive() }

// watch closes the line when its parent ends.
func (l *directConn) watch() {
	select {
	case <-l.parent.Done():
		l.conn.Close()
	case <-l.closed:
	}
}

// directPool are the direct wires that belong to one link of a machine.
type directPool struct {
	machine *Machine
	dialer  *wireDialer

	mu          sync.Mutex
	idle        []*directConn
	open        map[*directConn]bool // all that there are
	count       int                  // of them, and of those about to be
	limit       int                  // how many there may be
	noDialUntil time.Time            // until when none are dialled
	closed      bool                 // no more
}

func newDirectPool(link *wireDialer, limit int) *directPool {
	return &directPool{machine: link.machine, dialer: link, open: map[*directConn]bool{}, limit: limit}
}

// get returns a direct wire, or nil if there is none to be had: then a stream
// does.
func (ls *directPool) get(ctx context.Context) *directConn {
	if l := ls.popIdle(); l != nil {
		return l
	}
	if !ls.reserve() {
		return nil
	}
	l, err := ls.dial(ctx)
	if !ls.register(l, err) {
		return nil
	}
	return l
}

// idleOrDial returns a direct wire that is idle, or nil. Then it sees to it that
// there will be one.
func (ls *directPool) idleOrDial() *directConn {
	if l := ls.popIdle(); l != nil {
		return l
	}
	if ls.reserve() {
		ls.machine.goBackground(func() {
			ctx, cancel := context.WithTimeout(ls.machine.ctx, callTimeout)
			defer cancel()
			if l, err := ls.dial(ctx); ls.register(l, err) {
				ls.put(l)
			}
		})
	}
	return nil
}

// register counts a line that was dialled, or could not be.
func (ls *directPool) register(l *directConn, err error) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err != nil {
		ls.count--
		ls.noDialUntil = time.Now().Add(redialPause)
		switch {
		case errors.Is(err, ErrUnsupported): // an older guest
			ls.limit = 0
		case errors.Is(err, ErrBusy):
			ls.limit = min(ls.limit, max(ls.count, 1))
		}
		return false
	}
	ls.open[l] = true
	l.acquire()
	if ls.closed {
		ls.drop(l)
		return false
	}
	return true
}

// disable makes an end of all lines: the guest does not know what they are for.
func (ls *directPool) disable() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limit = 0
	for _, l := range ls.idle {
		ls.drop(l)
	}
	ls.idle = nil
}

// popIdle takes the line that was used last.
func (ls *directPool) popIdle() *directConn {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for len(ls.idle) > 0 {
		l := ls.idle[len(ls.idle)-1]
		ls.idle = ls.idle[:len(ls.idle)-1]
		l.idleTimer.Stop()
		if l.usable() {
			l.acquire()
			return l
		}
		ls.drop(l)
	}
	return nil
}

// drop closes a line for good. The lock is held.
func (ls *directPool) drop(l *directConn) {
	l.idleTimer.Stop()
	l.release()
	close(l.closed)
	l.conn.Close()
	delete(ls.open, l)
	ls.count--
}

func (ls *directPool) reserve() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed || ls.count >= ls.limit || ls.count > 0 && time.Now().Before(ls.noDialUntil) {
		return false
	}
	ls.count++
	return true
}

// dial asks for admission and opens a line.
func (ls *directPool) dial(ctx context.Context) (*directConn, error) {
	m := ls.machine
	parent, err := ls.dialer.get(ctx)
	if err != nil {
		return nil, err
	}
	if ls.dialer.kind == wire.KindControl && parent.version < directExecVersion {
		return nil, fmt.Errorf("commands on direct wires: %w", ErrUnsupported)
	}
	var direct wire.Direct
	ask := &unaryCall{Request: &wire.Request{Op: wire.OpFileDirect, File: &wire.File{}}}
	if err := m.callOn(ctx, parent, ask, &direct); err != nil {
		return nil, err
	}
	begin := time.Now()
	conn, err := m.dial(ctx)
	if err != nil {
		return nil, asLost(err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })()
	_, err = wire.Handshake(conn, &wire.Hello{
		Min: wire.MinVersion, Max: wire.MaxVersion, Client: m.options.Client, Epoch: m.nextEpoch(),
		Kind: wire.KindDirect, Token: direct.Token,
	})
	if err != nil {
		conn.Close()
		return nil, asLost(err)
	}
	if time.Since(begin) > slowDialTime {
		ls.mu.Lock()
		ls.limit = min(ls.limit, 1)
		ls.mu.Unlock()
	}
	quick := socket.Wrap(conn)
	l := &directConn{conn: quick, frames: wire.NewReader(quick), parent: parent, closed: make(chan struct{})}
	l.idleTimer = time.AfterFunc(directIdleTime, func() { ls.onIdleTimer(l) })
	l.idleTimer.Stop()
	go l.watch()
	return l, nil
}

// put keeps a line for the next transfer.
func (ls *directPool) put(l *directConn) {
	_ = l.conn.SetDeadline(noDeadline)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.open[l] {
		return
	}
	l.release()
	if !l.usable() {
		ls.drop(l)
		return
	}
	ls.idle = append(ls.idle, l)
	if l.ackPending {
		l.idleTimer.Reset(ackDelay)
	} else {
		l.idleTimer.Reset(directIdleTime)
	}
}

// onIdleTimer tells the guest that its result has come, or closes a line that nobody
// has used for long.
func (ls *directPool) onIdleTimer(l *directConn) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.Index(ls.idle, l)
	switch {
	case i < 0:
	case l.ackPending && l.parent.writeRequest(l.conn, &wire.Request{Op: wire.OpAckLast}) == nil:
		l.ackPending = false
		l.idleTimer.Reset(directIdleTime)
	default:
		ls.idle = slices.Delete(ls.idle, i, i+1)
		ls.drop(l)
	}
}

// discard closes a line that cannot be used any more.
func (ls *directPool) discard(l *directConn) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.open[l] {
		ls.drop(l)
	}
}

// close closes all lines, whatever they are used for. A guest that was not told
// yet that its result has come would keep it.
func (ls *directPool) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	for _, l := range ls.idle {
		if l.ackPending {
			_ = l.conn.SetWriteDeadline(time.Now().Add(closeAckTimeout))
			_ = l.parent.writeRequest(l.conn, &wire.Request{Op: wire.OpAckLast})
		}
	}
	ls.idle = nil
	for l := range ls.open {
		ls.drop(l)
	}
}
