package egress

import (
	"fmt"
	"time"
)

// sweepRegularly closes connections that are idle or too old, or whose sandbox is gone.
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
	for _, c := range s.connections() {
		if reason := c.overdue(now); reason != "" {
			c.abort(reason)
		}
	}
}

// overdue returns why a connection must end now; "" if it need not.
func (c *connection) overdue(now time.Time) string {
	limits := c.limits()
	idle, life := time.Duration(limits.IdleSeconds)*time.Second, time.Duration(limits.LifeSeconds)*time.Second
	switch gone, ok := c.client.(interface{ Lost() bool }); {
	case ok && gone.Lost():
		return "the sandbox is gone"
	case now.Sub(time.Unix(0, c.active.Load())) > idle:
		return fmt.Sprintf("no bytes for %v (egress.limits.idleSeconds)", idle)
	case now.Sub(c.started) > life:
		return fmt.Sprintf("open for %v (egress.limits.lifeSeconds)", life)
	}
	return ""
}
