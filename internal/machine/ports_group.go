package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxGroupConns bounds the connections of all groups of a machine, with the accepts
	// under way. It leaves streams to other ports.
	maxGroupConns = 96
	// groupAccepts is how many connections of a group can come at the same time without
	// waiting for a message from here to there.
	groupAccepts = 8
)

// groupKey is what the listeners of a group have in common.
type groupKey struct {
	grant     string
	withGrant bool
}

// portGroup is the listeners of one grant on addresses of their own. They share one
// stream and its accepts.
type portGroup struct {
	portKeeper
	machine *Machine
	key     groupKey

	changing sync.Mutex   // held while the guest opens or closes listeners
	binding  *portBinding // the newest; guarded by changing
	users    int          // listeners, and those that are being opened; guarded by mu of Machine

	mu        sync.Mutex
	listeners map[netip.AddrPort]*PortListener
}

// joinGroup opens a listener on an address.
func (l *PortListener) joinGroup(ctx context.Context) error {
	address := l.options.Address
	if l.options.AnyAddress == address.IsValid() || address.IsValid() && !wire.NameAddresses.Contains(address) {
		return fmt.Errorf("%w: address %v of a listener", ErrInvalid, address)
	}
	l.conns = make(chan *portConn, l.options.MaxConns)
	l.group = l.machine.groupFor(groupKey{l.options.Grant, l.options.WithGrant})
	l.ctx, l.cancel = context.WithCancelCause(l.group.ctx)
	if err := l.group.add(ctx, l); err != nil {
		l.cancel(err)
		l.group.leave()
		return err
	}
	return nil
}

// groupFor returns the group of a key, which the last of its users closes.
func (m *Machine) groupFor(key groupKey) *portGroup {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[key]
	if g == nil {
		g = &portGroup{machine: m, key: key, listeners: map[netip.AddrPort]*PortListener{}}
		g.bind = g.rebind
		g.serve = func(b *portBinding) { g.accepting(b, groupAccepts, g.acceptOne) }
		g.ctx, g.cancel = context.WithCancelCause(m.ctx)
		m.groups[key] = g
	}
	g.users++
	return g
}

// leave ends one use of the group.
func (g *portGroup) leave() {
	g.machine.mu.Lock()
	g.users--
	last := g.users == 0
	if last && g.machine.groups[g.key] == g {
		delete(g.machine.groups, g.key)
	}
	g.machine.mu.Unlock()
	if !last {
		return
	}
	g.cancel(net.ErrClosed)
	g.changing.Lock()
	done := g.done
	g.changing.Unlock()
	if done != nil {
		<-done
	}
}

// add opens a listener of the group, and the group itself for the first.
func (g *portGroup) add(ctx context.Context, l *PortListener) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	if g.done == nil {
		binding, err := g.bindAll(ctx)
		if err != nil {
			return err
		}
		g.done = make(chan struct{})
		go g.keepOpen(binding)
	}
	if err := g.addInside(l); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners[l.endpoint()] = l
	return nil
}

// remove closes a listener of the group, and the group itself with the last.
func (g *portGroup) remove(l *PortListener) {
	if g.forget(l) {
		g.changing.Lock()
		_ = g.call(wire.OpPortRemove, l, &struct{}{}) // without a wire it is closed already
		g.changing.Unlock()
		g.leave()
	}
}

// forget removes a listener and closes the connections that nothing has accepted. It
// returns false if that was done before.
func (g *portGroup) forget(l *PortListener) bool {
	g.mu.Lock()
	found := g.listeners[l.endpoint()] == l
	if found {
		delete(g.listeners, l.endpoint())
	}
	g.mu.Unlock()
	for found && len(l.conns) > 0 {
		select {
		case conn := <-l.conns:
			_ = conn.Close()
		default: // taken by Accept
		}
	}
	return found
}

func (l *PortListener) endpoint() netip.AddrPort {
	return netip.AddrPortFrom(l.options.Address, uint16(l.port))
}

// rebind opens the group and its listeners over a new wire.
func (g *portGroup) rebind(ctx context.Context) (*portBinding, error) {
	g.changing.Lock()
	defer g.changing.Unlock()
	return g.bindAll(ctx)
}

// bindAll opens the group and its listeners. A listener whose address is taken
// meanwhile ends with that error. The caller holds changing.
func (g *portGroup) bindAll(ctx context.Context) (*portBinding, error) {
	binding, err := g.machine.bindPort(ctx, wire.OpPortGroup, wire.Port{WithGrant: g.key.withGrant, Grant: g.key.grant})
	if err != nil {
		return nil, err
	}
	g.binding = binding
	for _, l := range g.all() {
		err := g.addInside(l)
		if errors.Is(err, ErrLost) || errors.Is(err, ErrBroken) || errors.Is(err, ErrClosed) || err != nil && g.ctx.Err() != nil {
			binding.Close()
			return nil, err
		}
		if err != nil {
			l.cancel(err)
		}
	}
	return binding, nil
}

func (g *portGroup) all() []*PortListener {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.listeners))
}

// addInside has the guest open a listener. It does not end with a context of the caller:
// the guest may have opened it by then.
func (g *portGroup) addInside(l *PortListener) error {
	var bound wire.Bound
	err := g.call(wire.OpPortAdd, l, &bound)
	if err != nil {
		if errors.Is(err, ErrLost) {
			g.binding.Close() // the guest may have opened it
		}
		return err
	}
	address, err := netip.ParseAddr(bound.Address)
	if err != nil || !wire.NameAddresses.Contains(address) || l.options.Address.IsValid() && address != l.options.Address {
		return g.binding.Violation("a listener on address %q", wire.Printable(bound.Address))
	}
	l.options.Address = address
	return nil
}

func (g *portGroup) call(op wire.Op, l *PortListener, answer any) error {
	port := &wire.Port{ID: g.binding.id, Port: l.port, Backlog: l.options.Backlog}
	if l.options.Address.IsValid() {
		port.Address = l.options.Address.String()
	}
	return g.machine.Call(g.ctx, &UnaryCall{Request: &wire.Request{Op: op, Port: port}, NoRetry: true}, answer)
}
