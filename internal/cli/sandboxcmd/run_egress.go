package sandboxcmd

import (
	"context"
	"maps"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// withEgress runs a command that has the egress of its agent and of its flags, under a
// grant that is open or one of its own, and says what was denied. It sets the grant and
// the variables of the options.
func (e *env) withEgress(ctx context.Context, s *provide.ReadySandbox, o *commandOptions, g *grant.Grant, run func() error) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	open, err := o.egress.Open(ctx, a, s, o.Account, g)
	if err != nil {
		return err
	}
	if open == nil {
		return run()
	}
	o.grant, o.denials = open.GrantID(), open.AllDenials
	env := open.Environment()
	maps.Copy(env, o.grantEnv)
	o.grantEnv = env
	err = run()
	for _, line := range open.AllDenials() {
		e.Notice(line)
	}
	return console.FirstOf(err, open.Close())
}
