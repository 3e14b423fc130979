// Package egresscmd has the verbs and flags of egress: the names that a sandbox without a
// network reaches, and the services of the host that it is shown.
package egresscmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Flags are --egress and --service of a verb that runs a command.
type Flags struct {
	rules    []string
	services []string
	// Default are rules that hold where the configuration says nothing about egress and
	// no --egress is given.
	Default []string
	// Learn lets the command reach any public name, to propose rules of what it reached.
	Learn bool
}

// maxServices is how many services of the host a sandbox is shown.
const maxServices = 16

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.rules, "egress", nil, "let the command reach a `NAME`, NAME:PORT, *.NAME or preset:NAME, beside what is configured (again for more)")
	flags.StringSliceVar(&f.services, "service", nil, "show a `port` of this machine's localhost inside, at the same port (again for more)")
}

// Config returns the egress of a sandbox with what the flags add.
func (f *Flags) Config(p *plan.Plan) (*config.Egress, error) {
	e := service.ConfigOf(p, policy.HalfIsolated)
	rules := f.rules
	if len(rules) == 0 && e.ModeIsDefault() {
		rules = f.Default
	}
	for _, text := range rules {
		if err := e.AllowRule(text); err != nil {
			return nil, fmt.Errorf("--egress: %w", err)
		}
	}
	if f.Learn {
		e.Mode = config.EgressLearn
	}
	e.Services = slices.Clone(e.Services)
	for _, text := range f.services {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, errhint.With(fmt.Errorf("--service %.40q is no port", text), "give the number of a port of this machine, 1 to 65535")
		}
		if port := int(port); !slices.Contains(e.Services, port) {
			e.Services = append(e.Services, port)
		}
	}
	if len(e.Services) > maxServices {
		return nil, fmt.Errorf("%d services are over the limit of %d", len(e.Services), maxServices)
	}
	return &e, nil
}

// Open opens the egress of an agent in its sandbox, for the commands of a grant that is
// open, or of one that it opens. It is nil where there is none.
func (f *Flags) Open(ctx context.Context, a *app.App, box *provide.ReadySandbox, account string, g *grant.Grant) (*service.Egress, error) {
	wanted := func(p *plan.Plan) (*config.Egress, error) {
		c, err := f.Config(p)
		if err != nil {
			return nil, console.WithCode(console.ExitUsage, err)
		}
		return c, nil
	}
	e, err := a.Egress.Open(ctx, box.Handle, box.Plan, service.Options{Config: wanted, Account: account, Grant: g})
	if errors.Is(err, grant.ErrOtherAccount) {
		err = errhint.With(err, "accounts never share a sandbox: give --account, or another --session")
	}
	return e, err
}

// Check refuses rules that can be seen to be wrong before a sandbox is made.
func (f *Flags) Check(cmd *cobra.Command) error {
	if _, err := f.Config(&plan.Plan{Agent: &config.Agent{}}); err != nil {
		return console.Usage(cmd, err)
	}
	return nil
}
