package egresscmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/policy"
)

// env is the command line at work, with the methods of this package.
type env struct{ *console.Env }

// NewEgressCommand returns the command `atoll egress`. The verb learn runs a command and
// comes from where commands are run.
func NewEgressCommand(c *console.Env, learn *cobra.Command) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use: "egress", Short: "See and decide which names sandboxes reach",
		Long: `A sandbox without a network reaches the names that sandbox.egress allows: programs inside
resolve and connect as they always do, and every connection is decided, made and recorded on
this machine. These verbs show what happened and why, and help to write rules. None of them
changes what is allowed but adopt, which asks.`,
		Example: `  atoll egress status
  atoll egress explain https://registry.example.org/left-pad
  atoll egress log --denied`,
	}
	cmd.AddCommand(newStatusCommand(e), newExplainCommand(e), newLogCommand(e), learn, newProposeCommand(e), newAdoptCommand(e), newPresetsCommand(e))
	return cmd
}

// rules compiles the rules of the flags' agent: of the networked half, if there are two.
func (e *env) rules(ctx context.Context, o *console.SubjectFlags) (*rule.Policy, error) {
	settings, err := e.Load()
	if err != nil {
		return nil, err
	}
	p, err := settings.Plan(o.Who())
	if err != nil {
		return nil, err
	}
	c := service.ConfigOf(p, policy.HalfNetworked)
	return service.Compile(ctx, &c, p.Agent.Workspace)
}
