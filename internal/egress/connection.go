package egress

import (
	"context"
	"errors"
	"maps"
	"net"
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
	limits  config.EgressLimits
	started time.Time
	out, in atomic.Int64
	active  atomic.Int64 // when bytes last moved, in nanoseconds since 1970

	mu       sync.Mutex
	decision rule.Decision
	asked    bool // a person allowed it
	opened   bool // its record is written
	route    string
	reason   string // why it was ended, if not by its ends
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
	c := &connection{server: s, client: client, name: name, port: port, exec: execOf(client), limits: s.o.Policy.Limits(), started: s.o.Now()}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = true
	return c
}

func (c *connection) touch() { c.active.Store(c.server.o.Now().UnixNano()) }

// sending counts bytes that are about to go out.
func (c *connection) sending(n int) error {
	c.touch()
	if c.out.Add(int64(n)) > c.limits.BytesOut {
		c.close(errBytesOut.Error())
		return errBytesOut
	}
	return nil
}

// received counts bytes that came in.
func (c *connection) received(n int) error {
	c.touch()
	if c.in.Add(int64(n)) > c.limits.BytesIn {
		c.close(errBytesIn.Error())
		return errBytesIn
	}
	return nil
}

// close ends the connection and what was opened for it. The first reason stays.
func (c *connection) close(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
	}
	c.cancel()
	_ = c.client.Close()
	for _, up := range c.upstream {
		_ = up.Close()
	}
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

// closeConnections closes the connections for which why returns a reason.
func (s *Server) closeConnections(why func(*connection) string) {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, c := range open {
		if reason := why(c); reason != "" {
			c.close(reason)
		}
	}
}
