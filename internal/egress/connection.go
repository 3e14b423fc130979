package egress

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

var (
	errBytesOut = errors.New("the connection sent more than egress.limits.bytesOut")
	errBytesIn  = errors.New("the connection received more than egress.limits.bytesIn")
)

// connection is one connection of a program, with what was opened for it.
type connection struct {
	server  *Server
	ctx     context.Context
	cancel  context.CancelFunc
	client  net.Conn
	name    string
	port    int
	exec    string
	started time.Time
	out, in atomic.Int64
	active  atomic.Int64 // when bytes last moved, in nanoseconds since 1970

	mu       sync.Mutex
	allowed  bool
	decision rule.Decision
	asked    bool    // a person allowed it
	request  *judged // the last of its requests; nil if none was allowed
	dialled  bool
	proxy    string // that it is dialled through, by the rules
	opened   bool   // its record is written
	route    string
	address  netip.Addr // of the server; not valid behind a proxy
	reason   string     // why it was ended, if not by its ends
	upstream []net.Conn
}

// execOf returns the command that the caller of a connection descends from.
func execOf(conn net.Conn) string {
	if c, ok := conn.(interface{ Exec() string }); ok {
		return c.Exec()
	}
	return ""
}

// newConnection adds a connection to those that are open. end removes it.
func (s *Server) newConnection(client net.Conn, name string, port int) *connection {
	c := &connection{server: s, client: client, name: name, port: port, exec: execOf(client), started: s.o.Now()}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
	return c
}

// limits are those in force.
func (c *connection) limits() config.EgressLimits { return c.server.Policy().Limits() }

func (c *connection) touch() { c.active.Store(c.server.o.Now().UnixNano()) }

// sending counts bytes that are about to go out.
func (c *connection) sending(n int) error {
	c.touch()
	if c.out.Add(int64(n)) > c.limits().BytesOut {
		c.abort(errBytesOut.Error())
		return errBytesOut
	}
	return nil
}

// received counts bytes that came in.
func (c *connection) received(n int) error {
	c.touch()
	if c.in.Add(int64(n)) > c.limits().BytesIn {
		c.abort(errBytesIn.Error())
		return errBytesIn
	}
	return nil
}

// close ends the connection and what was opened for it. The first reason stays.
func (c *connection) close(reason string) {
	c.closeBy(reason, func(conn net.Conn) { _ = conn.Close() })
}

// abort is close that neither end can take for the end of what was sent: they are
// reset.
func (c *connection) abort(reason string) { c.closeBy(reason, reset) }

func (c *connection) closeBy(reason string, end func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
	}
	c.cancel()
	end(c.client)
	for _, up := range c.upstream {
		end(up)
	}
}

// reset closes a connection with RST where it has that.
func reset(conn net.Conn) {
	switch c := conn.(type) {
	case interface{ Reset() }:
		c.Reset()
		return
	case interface{ SetLinger(sec int) error }:
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// end removes the connection from those that are open and writes its last record.
func (c *connection) end() {
	c.server.mu.Lock()
	delete(c.server.open, c)
	c.server.mu.Unlock()
	c.mu.Lock()
	reason := c.reason
	c.mu.Unlock()
	c.close(reason)
	if !c.opened {
		return
	}
	e := c.event(audit.EgressClosed)
	e.Reason, e.BytesOut, e.BytesIn, e.Duration = reason, c.out.Load(), c.in.Load(), e.Time.Sub(c.started)
	_ = c.server.o.Audit(e) // nothing follows that it could stop
}

// event returns a record about the connection.
func (c *connection) event(kind string) *audit.EgressEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &audit.EgressEvent{
		Time: c.server.o.Now(), Subject: c.server.o.Subject, Sandbox: c.server.o.Sandbox, Exec: c.exec, Event: kind,
		Name: c.name, Port: c.port, Mode: string(c.decision.Action), Rule: c.decision.Rule, Route: c.route,
	}
}

// connections returns those that are open.
func (s *Server) connections() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}
