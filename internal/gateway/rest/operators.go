package rest

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/api"
)

// examineTimeout bounds an examination of the machine.
const examineTimeout = 30 * time.Second

// doctor examines the machine, which is the same for all accounts.
func (s *Server) doctor(c *call, _, _ *none) (*api.Doctor, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	answer := &api.Doctor{Checks: []api.DoctorCheck{}}
	if s.Examine != nil {
		ctx, cancel := context.WithTimeout(c.ctx(), examineTimeout)
		defer cancel()
		answer.Checks = append(answer.Checks, s.Examine(ctx)...)
	}
	return answer, nil
}
