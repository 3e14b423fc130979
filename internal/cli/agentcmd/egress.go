package agentcmd

import (
	"context"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// executeWithEgress runs the program with the egress of its agent and of the flags, under
// a grant that is open or one of its own, and says what was denied.
func (s *start) executeWithEgress(ctx context.Context, g *grant.Grant) error {
	open, err := s.egress.Open(ctx, s.app, s.box, "", g)
	if err != nil {
		return err
	}
	if open != nil {
		s.grant, s.grantEnv = open.GrantID(), open.Environment()
	}
	err = s.execute(ctx)
	for _, line := range open.AllDenials() {
		s.Notice(line)
	}
	return console.FirstOf(err, open.Close())
}
