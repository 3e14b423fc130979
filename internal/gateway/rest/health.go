package rest

import (
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// health reports that the process answers.
func (s *Server) health(*call, *none, *none) (*api.Health, error) {
	return &api.Health{OK: true, Version: s.Version}, nil
}

// ready runs the health checks. The reason of a failure is logged, and answered
// only to callers of every account.
func (s *Server) ready(c *call, _, _ *none) (*api.Ready, error) {
	if err := s.Ready(c.ctx()); err != nil {
		p := &api.Problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "a part of the gateway does not answer"}
		if caller, _ := s.Identify(c.r); caller != nil && caller.Account == "" {
			c.caller, p.Detail = caller, err.Error()
		}
		s.Logger.WarnContext(c.ctx(), "not ready", "request", c.id, "error", err)
		return nil, p
	}
	return &api.Ready{Ready: true}, nil
}

// metrics writes the counters, which cover all accounts.
func (s *Server) metrics(c *call) error {
	if err := c.requireUnbound(); err != nil {
		return err
	}
	s.Metrics.ServeHTTP(c.w, c.r)
	return nil
}
