package egress

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// MaxNames is the most names that have an address at a time. The least recently
// used one loses its address to a new one.
const MaxNames = 256

var errTooManyNames = errors.New("every name that has an address is in use")

// nameTable has the names that have an address in the sandbox.
type nameTable struct {
	server *Server

	mu        sync.Mutex
	closed    bool
	byName    map[string]*nameEntry
	byAddress map[netip.Addr]*nameEntry
	order     *list.List // most recently used first
}

// nameEntry is one name with its listeners.
type nameEntry struct {
	name    string
	element *list.Element
	users   int // connections, and questions being answered; guarded by nameTable.mu

	mu      sync.Mutex
	removed bool
	address netip.Addr
	ports   map[int]net.Listener
}

func newNameTable(s *Server) *nameTable {
	return &nameTable{server: s, byName: map[string]*nameEntry{}, byAddress: map[netip.Addr]*nameEntry{}, order: list.New()}
}

// resolve returns the address of a name and sees to it that the ports are
// listened on. If the sandbox has no room for them, which others share, the least
// recently used name gives its own up.
func (t *nameTable) resolve(ctx context.Context, name string, ports []int) (netip.Addr, error) {
	a, err := t.listenAll(ctx, name, ports)
	if err == nil || ctx.Err() != nil || !t.giveUpOne(name) {
		return a, err
	}
	return t.listenAll(ctx, name, ports)
}

// giveUpOne takes the address of the least recently used other name that is not
// in use, and returns when its listeners are closed.
func (t *nameTable) giveUpOne(except string) bool {
	t.mu.Lock()
	done := t.evict(except)
	t.mu.Unlock()
	if done == nil {
		return false
	}
	<-done
	return true
}

func (t *nameTable) listenAll(ctx context.Context, name string, ports []int) (netip.Addr, error) {
	e, err := t.use(name)
	if err != nil {
		return netip.Addr{}, err
	}
	defer t.release(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removed {
		return netip.Addr{}, net.ErrClosed
	}
	e.closeExcept(ports)
	for _, port := range ports {
		if err := t.listen(ctx, e, port); err != nil {
			return netip.Addr{}, err
		}
	}
	return e.address, nil
}

// listen opens one port of a name, if it is not open.
func (t *nameTable) listen(ctx context.Context, e *nameEntry, port int) error {
	if e.ports[port] != nil {
		return nil
	}
	l, address, err := t.server.o.Inside.Listen(ctx, e.address, port)
	if err != nil {
		return err
	}
	e.ports[port] = l
	if e.address != address {
		e.address = address
		t.mu.Lock()
		t.byAddress[address] = e
		t.mu.Unlock()
	}
	t.server.tasks.Go(func() {
		t.server.accept(l, func(conn net.Conn) { t.serve(conn, e, port) })
		t.forget(e, port, l)
	})
	return nil
}

// serve handles a connection to a name; the name keeps its address meanwhile.
func (t *nameTable) serve(conn net.Conn, e *nameEntry, port int) {
	t.mu.Lock()
	e.users++
	t.order.MoveToFront(e.element)
	t.mu.Unlock()
	defer t.release(e)
	t.server.serveConnection(conn, e.name, port)
}

// forget drops a listener that has ended, so that the next question opens
// another.
func (t *nameTable) forget(e *nameEntry, port int, l net.Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ports[port] == l {
		delete(e.ports, port)
	}
}

// use finds or makes the entry of a name. It is in use until it is released.
func (t *nameTable) use(name string) (*nameEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, net.ErrClosed
	}
	e := t.byName[name]
	if e == nil {
		if len(t.byName) >= MaxNames && t.evict(name) == nil {
			return nil, errTooManyNames
		}
		e = &nameEntry{name: name, ports: map[int]net.Listener{}}
		e.element = t.order.PushFront(e)
		t.byName[name] = e
	}
	t.order.MoveToFront(e.element)
	e.users++
	return e, nil
}

func (t *nameTable) release(e *nameEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.users--
}

// evict takes the address of the least recently used other name that is not in
// use. The channel is closed when its listeners are; nil means that there is none.
func (t *nameTable) evict(except string) <-chan struct{} {
	for at := t.order.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*nameEntry); e.users == 0 && e.name != except {
			return t.remove(e)
		}
	}
	return nil
}

// remove takes an entry out of the table. Its listeners are closed in the
// background, which takes an answer from the sandbox.
func (t *nameTable) remove(e *nameEntry) <-chan struct{} {
	done := make(chan struct{})
	t.order.Remove(e.element)
	delete(t.byName, e.name)
	t.server.tasks.Go(func() {
		defer close(done)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.removed = true
		e.closeExcept(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.byAddress, e.address)
	})
	return done
}

// closeExcept closes the listeners of other ports than those given.
func (e *nameEntry) closeExcept(ports []int) {
	for port, l := range e.ports {
		if !slices.Contains(ports, port) {
			delete(e.ports, port)
			_ = l.Close()
		}
	}
}

// nameOf returns the name that an address stands for.
func (t *nameTable) nameOf(a netip.Addr) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byAddress[a]
	if e == nil {
		return "", false
	}
	return e.name, true
}

// close takes the address of every name.
func (t *nameTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, e := range t.byName {
		t.remove(e)
	}
}
