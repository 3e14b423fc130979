package egress

import (
	"cmp"
	"context"
	"errors"
	"net"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// dial connects to the server of a connection. The record of it is written
// before the name is resolved.
func (c *connection) dial(ctx context.Context) (net.Conn, error) {
	s := c.server
	if err := s.o.Audit(c.event(audit.EgressOpened)); err != nil {
		return nil, err
	}
	rules := s.rules.Load()
	c.mu.Lock()
	c.dialled, c.proxy = true, proxyFor(rules.Policy, c.name)
	dialer := &outbound.NameDialer{Host: s.o.Outbound, Network: s.o.Network, Rule: outbound.Public(c.decision.Private...), Proxy: c.proxy}
	c.mu.Unlock()
	conn, route, err := dialer.Dial(ctx, c.name, c.targetPort())
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opened, c.reason = true, cmp.Or(c.reason, err.Error())
		return nil, withPrivateHint(err)
	}
	up, err := c.add(conn, route)
	if now := s.rules.Load(); err == nil && now != rules { // SetRules ran during the dial: it has not judged this address
		c.keep(now, false)
	}
	return up, err
}

// proxyFor returns the proxy that the rules name for a name, or "".
func proxyFor(p *rule.Policy, name string) string { return cmp.Or(p.Via(name), p.Upstream()) }

// withPrivateHint says how an address that is not public can be permitted.
func withPrivateHint(err error) error {
	if !errors.Is(err, outbound.ErrNotPublic) || errors.Is(err, outbound.ErrMetadata) || errhint.Of(err) != "" {
		return err
	}
	return errhint.With(err, "if a server in a network of yours is meant, name the host in sandbox.egress.allow and that network in sandbox.egress.private")
}

// targetPort is the port of the server: that of TLS if plain HTTP is upgraded.
func (c *connection) targetPort() int {
	if c.decision.Upgrade {
		return 443
	}
	return c.port
}

// add makes a connection to the server part of the connection of the program.
func (c *connection) add(conn net.Conn, route outbound.Route) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened, c.route, c.address = true, route.String(), route.Address.Addr()
	if err := c.ctx.Err(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.upstream = append(c.upstream, conn)
	return &counted{Conn: conn, of: c}, nil
}

// counted is a connection to a server whose bytes are counted and bounded.
type counted struct {
	net.Conn
	of *connection
}

func (u *counted) Write(b []byte) (int, error) {
	if err := u.of.sending(len(b)); err != nil {
		return 0, err
	}
	return u.Conn.Write(b)
}

func (u *counted) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	if n > 0 {
		if err := u.of.received(n); err != nil {
			return 0, err
		}
	}
	return n, err
}

// CloseWrite sends that no more will be written. A connection that cannot send
// that is closed.
func (u *counted) CloseWrite() error {
	if half, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return u.Close()
}
