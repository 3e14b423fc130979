package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/egress/clienthello"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/splice"
	"github.com/atoll-run/atoll/internal/errhint"
)

// askTimeout is how long a connection is held for the answer of a person.
const askTimeout = 2 * time.Minute

// errSilent is a program that did not send its first message in time.
var errSilent = errors.New("no whole TLS ClientHello came in time")

// serveConnection handles a connection of a program to a port of a name.
func (s *Server) serveConnection(client net.Conn, name string, port int) {
	c := s.newConnection(client, name, port)
	defer c.end()
	err := c.decide()
	if err == nil {
		err = c.admit()
	}
	if err != nil {
		c.refuse(nil, err)
		return
	}
	defer s.admit.release()
	c.carry(client)
}

// admit waits until the limits permit the connection.
func (c *connection) admit() error {
	limits := c.limits()
	return c.server.admit.acquire(c.ctx, limits.Connections, limits.NewPerMinute)
}

// decide asks the rules, and a person if the rules say so.
func (c *connection) decide() error {
	for {
		rules := c.server.rules.Load()
		d := rules.Policy.Connect(c.name, c.port)
		allowed := d.Allow
		if d.Ask && !allowed {
			allowed = c.ask(&d)
		}
		c.mu.Lock()
		c.decision, c.asked, c.allowed = d, allowed && d.Ask, allowed
		c.mu.Unlock()
		if !allowed {
			return denied(d)
		}
		if c.server.rules.Load() == rules { // later changes find the decision
			return nil
		}
	}
}

// denied returns the error of a decision.
func denied(d rule.Decision) error { return errhint.With(fmt.Errorf("%s", d.Reason), d.Hint) }

// ask holds the connection until a person has decided.
func (c *connection) ask(d *rule.Decision) bool {
	if c.server.o.Ask == nil {
		d.Reason = "no one can be asked"
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, askTimeout)
	defer cancel()
	allow, err := c.server.o.Ask(ctx, Question{Name: c.name, Port: c.port, Exec: c.exec, Hint: d.Hint})
	if err != nil {
		d.Reason = "a person was asked: " + err.Error()
	} else if !allow {
		d.Reason = "a person said no"
	}
	return allow && err == nil
}

// carry does what the rule says with a connection that is allowed.
func (c *connection) carry(client net.Conn) {
	switch c.decision.Action {
	case rule.Splice:
		c.spliceTLS(client)
	case rule.TCP:
		c.splice(client, nil)
	case rule.Inspect, rule.HTTP:
		c.inspect(client)
	default:
		c.refuse(nil, fmt.Errorf("the rule has the unknown mode %q", c.decision.Action))
	}
}

// spliceTLS relays a TLS connection whose server name is the name.
func (c *connection) spliceTLS(client net.Conn) {
	first, err := c.readHello(client)
	if err != nil {
		c.refuse(first, err)
		return
	}
	c.splice(client, first)
}

// splice relays bytes. first was read from the client already.
func (c *connection) splice(client net.Conn, first []byte) {
	up, err := c.dial(c.ctx)
	if err != nil {
		c.fail(first, err)
		return
	}
	if len(first) > 0 {
		if _, err := up.Write(first); err != nil {
			return
		}
	}
	_ = splice.Both(client, up)
}

// readHello reads the first message of TLS, which must be for the name. It
// returns what it read in any case.
func (c *connection) readHello(client net.Conn) ([]byte, error) {
	if err := client.SetReadDeadline(time.Now().Add(c.server.o.helloTimeout)); err != nil {
		return nil, err
	}
	name, first, err := clienthello.Read(client)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return first, errSilent
	}
	if err != nil {
		return first, err
	}
	if canonical, err := hostname.Canonical(name); err != nil || canonical != c.name {
		return first, fmt.Errorf("the server name of TLS is %.260q, which is not the name that was connected to", name)
	}
	return first, client.SetReadDeadline(time.Time{})
}
