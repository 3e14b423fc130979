package egress

import (
	"fmt"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/proxyport"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// serveProxy handles a connection to the proxy.
func (s *Server) serveProxy(client net.Conn) {
	if client.SetDeadline(time.Now().Add(s.o.helloTimeout)) != nil {
		return
	}
	request, err := proxyport.Read(client)
	if err != nil {
		return
	}
	name, err := hostname.Canonical(request.Host)
	if err != nil {
		_ = request.Refuse("egress: the host of the request is refused: " + err.Error())
		return
	}
	if client.SetDeadline(time.Time{}) != nil {
		return
	}
	c := s.newConnection(client, name, request.Port)
	defer c.end()
	if err := c.admitProxied(request); err != nil {
		c.record(err)
		_ = request.Refuse(c.text("denied", err))
		return
	}
	defer s.admit.release()
	first, err := request.Accept()
	if err != nil {
		return
	}
	c.carry(outbound.Prefixed(client, first))
}

// admitProxied decides about a request of the proxy. The limits come last,
// because what they admit must be released.
func (c *connection) admitProxied(request *proxyport.Request) error {
	if err := c.decide(); err != nil {
		return err
	}
	if request.Plain && c.decision.Action != rule.HTTP {
		return errhint.With(fmt.Errorf("the rule is for %s, not for plain HTTP", c.decision.Action), "use https://, or a rule for port 80")
	}
	return c.admit()
}
