package machine

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

const (
	// directIdleTime is how long an unused direct connection is kept.
	directIdleTime = 30 * time.Second
	// ackDelay is when a result is acknowledged if no request did so before.
	ackDelay = 2 * time.Millisecond
	// closeAckTimeout is how long an acknowledgement may take when the machine
	// closes.
	closeAckTimeout = 20 * time.Millisecond
	// redialPause is how long no more connections are dialled after one failed.
	redialPause = time.Second
	// slowDialTime is a dial that costs more than a direct connection saves. Then
	// one is kept, and no more are dialled.
	slowDialTime = 20 * time.Millisecond
)

// directConn is a connection that carries one transfer or command after the
// other, without multiplexing. It ends with its parent, if it has one.
type directConn struct {
	conn       net.Conn
	frames     *wire.Reader
	parent     *wireConn     // the wire that admitted it; nil: none
	features   wire.Features // of the guest, if there is no parent
	idleTimer  *time.Timer
	ackPending bool // the guest still keeps the last result for an acknowledgement
	closed     chan struct{}

	doneWaiting func() // set while the connection is in use: see wire.Mux.AddWaiter
}

// acquire marks the connection as used, so that the parent sends heartbeats.
func (c *directConn) acquire() {
	if c.parent != nil {
		c.doneWaiting = c.parent.AddWaiter()
	}
}

func (c *directConn) release() {
	if c.doneWaiting != nil {
		c.doneWaiting()
		c.doneWaiting = nil
	}
}

// usable reports whether the connection can take another request. Without a
// parent only its socket can tell.
func (c *directConn) usable() bool {
	if c.parent != nil {
		return c.parent.alive()
	}
	conn, ok := c.conn.(*socket.Conn)
	return ok && !conn.PeerClosed()
}

// watch closes the connection when its parent ends.
func (c *directConn) watch() {
	select {
	case <-c.parent.Done():
		c.conn.Close()
	case <-c.closed:
	}
}

// directPool holds the direct connections of one purpose: transfers or commands.
type directPool struct {
	machine *Machine
	dialer  *wireDialer // of the parents

	mu          sync.Mutex
	idle        []*directConn
	open        map[*directConn]bool // idle or in use
	count       int                  // open ones, and those being dialled
	limit       int                  // on count
	noDialUntil time.Time
	closed      bool
}

func newDirectPool(dialer *wireDialer, limit int) *directPool {
	return &directPool{machine: dialer.machine, dialer: dialer, open: map[*directConn]bool{}, limit: limit}
}

// get returns a direct connection, or nil if none can be had: then the caller
// uses a stream.
func (p *directPool) get(ctx context.Context) *directConn {
	if c := p.popIdle(); c != nil {
		return c
	}
	if !p.reserve() {
		return nil
	}
	c, err := p.dial(ctx)
	if !p.register(c, err) {
		return nil
	}
	return c
}

// idleOrDial returns an idle direct connection, or nil. Then it dials one in the
// background, for later calls.
func (p *directPool) idleOrDial() *directConn {
	if c := p.popIdle(); c != nil {
		return c
	}
	if p.reserve() {
		p.machine.goBackground(func() {
			ctx, cancel := context.WithTimeout(p.machine.ctx, CallTimeout)
			defer cancel()
			if c, err := p.dial(ctx); p.register(c, err) {
				p.put(c)
			}
		})
	}
	return nil
}

// register adds a connection that was dialled after reserve, or gives the
// reservation back if that failed.
func (p *directPool) register(c *directConn, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.count--
		p.noDialUntil = time.Now().Add(redialPause)
		switch {
		case errors.Is(err, ErrUnsupported): // an older guest
			p.limit = 0
		case errors.Is(err, ErrBusy):
			p.limit = min(p.limit, max(p.count, 1))
		}
		return false
	}
	return p.add(c)
}

// add makes the pool close c when it is closed itself. The lock is held.
func (p *directPool) add(c *directConn) bool {
	p.open[c] = true
	c.acquire()
	if p.closed {
		p.drop(c)
		return false
	}
	return true
}

// disable closes all idle connections and opens no more: the guest does not take
// these requests on them.
func (p *directPool) disable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = 0
	for _, c := range p.idle {
		p.drop(c)
	}
	p.idle = nil
}

// popIdle takes the idle connection that was used last.
func (p *directPool) popIdle() *directConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		c.idleTimer.Stop()
		if c.usable() {
			c.acquire()
			return c
		}
		p.drop(c)
	}
	return nil
}

// drop closes a connection and removes it from the pool. The lock is held.
func (p *directPool) drop(c *directConn) {
	c.idleTimer.Stop()
	c.release()
	close(c.closed)
	c.conn.Close()
	delete(p.open, c)
	p.count--
}

func (p *directPool) reserve() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count >= p.limit || p.count > 0 && time.Now().Before(p.noDialUntil) {
		return false
	}
	p.count++
	return true
}

// put keeps a connection for the next request.
func (p *directPool) put(c *directConn) {
	_ = c.conn.SetDeadline(noDeadline)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open[c] {
		return
	}
	c.release()
	if !c.usable() {
		p.drop(c)
		return
	}
	p.idle = append(p.idle, c)
	if c.ackPending {
		c.idleTimer.Reset(ackDelay)
	} else {
		c.idleTimer.Reset(directIdleTime)
	}
}

// onIdleTimer acknowledges the last result, or closes a connection that was idle
// for directIdleTime.
func (p *directPool) onIdleTimer(c *directConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, c)
	switch {
	case i < 0:
	case c.ackPending && c.parent.writeRequest(c.conn, &wire.Request{Op: wire.OpAckLast}) == nil:
		c.ackPending = false
		c.idleTimer.Reset(directIdleTime)
	default:
		p.idle = slices.Delete(p.idle, i, i+1)
		p.drop(c)
	}
}

// discard closes a connection that cannot be used any more.
func (p *directPool) discard(c *directConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[c] {
		p.drop(c)
	}
}

// close closes all connections, idle or in use. Results are acknowledged first: a
// guest would keep them.
func (p *directPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		if c.ackPending {
			_ = c.conn.SetWriteDeadline(time.Now().Add(closeAckTimeout))
			_ = c.parent.writeRequest(c.conn, &wire.Request{Op: wire.OpAckLast})
		}
	}
	p.idle = nil
	for c := range p.open {
		p.drop(c)
	}
}
