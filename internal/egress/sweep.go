package egress

import (
	"fmt"
	"time"
)

// sweepRegularly closes connections that are idle or too old.
func (s *Server) sweepRegularly() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep()
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) sweep() {
	now := s.o.Now()
	s.closeConnections(func(c *connection) string { return c.overdue(now) })
}

// overdue returns why a connection must end now; "" if it need not.
func (c *connection) overdue(now time.Time) string {
	idle, life := time.Duration(c.limits.IdleSeconds)*time.Second, time.Duration(c.limits.LifeSeconds)*time.Second
	switch {
	case now.Sub(time.Unix(0, c.active.Load())) > idle:
		return fmt.Sprintf("no bytes for %v (egress.limits.idleSeconds)", idle)
	case now.Sub(c.started) > life:
		return fmt.Sprintf("open for %v (egress.limits.lifeSeconds)", life)
	}
	return ""
}
