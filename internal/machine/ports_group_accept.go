package machine

import (
	"context"
	"errors"
	"net/netip"

	"github.com/atoll-run/atoll/internal/wire"
)

// acceptOne passes one connection to the listener that it is for. It reports whether
// there may be more.
func (g *portGroup) acceptOne(ctx context.Context, binding *portBinding) bool {
	slots := g.machine.groupConns
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	conn, err := binding.accept(ctx)
	if err != nil {
		<-slots
		return ctx.Err() == nil && errors.Is(err, ErrBusy)
	}
	conn.closed = func() { <-slots }
	if !wire.NameAddresses.Contains(conn.caller.To.Addr()) {
		_ = conn.Violation("connection to an address without a listener")
	}
	if !g.deliver(ctx, conn) {
		conn.Reset()
	}
	return true
}

// deliver passes a connection to its listener. It returns false if there is none any
// more, or the listener does not want it.
func (g *portGroup) deliver(ctx context.Context, conn *portConn) bool {
	l := g.find(conn.caller.To)
	if l == nil || l.gate(ctx, conn.caller) != nil {
		return false
	}
	select {
	case l.slots <- struct{}{}:
	default: // as many as it may have are under way
		return false
	}
	release := conn.closed
	conn.closed = func() { <-l.slots; release() }
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listeners[conn.caller.To] != l {
		return false
	}
	l.conns <- conn // does not block: it holds as many as slots does
	return true
}

// find returns the listener of an address and port. A connection can come before the
// answer that its listener is open: then it waits for that.
func (g *portGroup) find(to netip.AddrPort) *PortListener {
	lookup := func() *PortListener {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.listeners[to]
	}
	if l := lookup(); l != nil {
		return l
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	return lookup()
}
