package ports

import (
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// groupQueue bounds the accepted connections of a group that its host has not taken
	// yet.
	groupQueue = wire.MaxBacklog
	// addressTries is how many free addresses are tried. A program in the sandbox may
	// listen on one of them.
	addressTries = 4
)

// group keeps a group of listeners until the host closes the stream. It has none yet.
func (c *Call) group(p *wire.Port) error {
	if !wire.ValidID(p.ID) || p.Grant != "" && !wire.ValidID(p.Grant) {
		return wire.Fail(wire.CodeInvalid, "the id or the grant makes no sense")
	}
	l := newListener(p, groupQueue)
	l.places = map[endpoint]func(){}
	if err := c.ports.claim(p.ID, l); err != nil {
		return err
	}
	defer l.close()
	defer c.ports.dropGroup(p.ID, l)
	return c.untilClosed(&wire.Bound{IPv4: true})
}

// dropGroup removes a group and closes its listeners.
func (ps *Server) dropGroup(id string, l *listener) {
	ps.mu.Lock()
	delete(ps.listeners, id)
	places := l.places
	l.places = nil
	for e := range places {
		ps.names.remove(e.address)
	}
	ps.mu.Unlock()
	for _, leave := range places {
		if leave != nil { // otherwise add is opening it
			leave()
		}
	}
}

// add opens a listener of a group on one address.
func (c *Call) add(p *wire.Port) error {
	l, e, err := c.member(p)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		bound, err := c.ports.place(l, e, backlogOf(p))
		if err == nil {
			return wire.WriteJSON(c.Stream, wire.FrameResult, bound)
		}
		if p.Address != "" || wire.AsError(err).Code != wire.CodePortTaken || try == addressTries {
			return err
		}
	}
}

// remove closes a listener of a group.
func (c *Call) remove(p *wire.Port) error {
	l, e, err := c.member(p)
	if err != nil {
		return err
	}
	c.ports.unplace(l, e)
	return wire.WriteJSON(c.Stream, wire.FrameResult, struct{}{})
}

// member returns the group and the endpoint that a request names.
func (c *Call) member(p *wire.Port) (*listener, endpoint, error) {
	if err := checkPort(p); err != nil {
		return nil, endpoint{}, err
	}
	e, err := nameEndpoint(p)
	if err != nil {
		return nil, endpoint{}, err
	}
	l := c.ports.find(p.ID)
	if l == nil {
		return nil, endpoint{}, errNoGroup
	}
	return l, e, nil
}

var errNoGroup = wire.Fail(wire.CodeRefused, "there is no such group of listeners")

// place opens an endpoint for a group. It chooses the address if there is none.
func (ps *Server) place(l *listener, e endpoint, backlog int) (*wire.Bound, error) {
	e, err := ps.reserve(l, e)
	if err != nil {
		return nil, err
	}
	bound, leave, err := ps.open(l, e, backlog)
	if err != nil {
		ps.unplace(l, e)
		return nil, err
	}
	ps.mu.Lock()
	dropped := l.places == nil
	if !dropped {
		l.places[e] = leave
	}
	ps.mu.Unlock()
	if dropped {
		leave()
		return nil, errNoGroup
	}
	return bound, nil
}

// reserve counts an endpoint as one of the group before it is opened.
func (ps *Server) reserve(l *listener, e endpoint) (endpoint, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if l.places == nil {
		return e, errNoGroup
	}
	if _, taken := l.places[e]; taken {
		return e, wire.Fail(wire.CodePortTaken, "the group has a listener there already")
	}
	if ps.names.total >= wire.MaxNameListeners {
		return e, wire.Fail(wire.CodeTooMany, "too many addresses are open in this sandbox")
	}
	if !e.address.IsValid() {
		e.address = ps.names.free()
	}
	ps.names.add(e.address)
	l.places[e] = nil
	return e, nil
}

// unplace closes an endpoint of a group, or gives a reserved one back.
func (ps *Server) unplace(l *listener, e endpoint) {
	ps.mu.Lock()
	leave, found := l.places[e]
	if found {
		delete(l.places, e)
		ps.names.remove(e.address)
	}
	ps.mu.Unlock()
	if leave != nil {
		leave()
	}
}
