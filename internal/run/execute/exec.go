package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Exec runs the agent's program, under the grant. A disk that runs full ends it.
func (p *Sandbox) Exec(ctx context.Context, c *machine.Command) (*machine.Result, error) {
	s, err := p.Ready(ctx)
	if err != nil {
		return nil, err
	}
	command := *c
	command.Env = commandEnv(s.Plan, append(sandbox.EnvList(p.egress.Environment()), c.Env...))
	if p.grant != nil {
		command.Grant = p.grant.ID()
		if err := p.runs.executor.models.AuditExec(p.terms, s.Name, c.Argv); err != nil {
			return nil, err
		}
	}
	ctx, stop := p.runs.executor.WatchDisk(ctx)
	defer stop()
	result, err := s.Machine.Exec(ctx, &command)
	if p.runs.executor.DiskFilled(ctx) {
		return nil, &run.Failure{Code: "disk_full", Message: "the disk of the workspace ran full, and the agent was ended"}
	}
	return result, err
}

// commandEnv returns the environment of the sandbox's commands with that of one
// command, whose entries win.
func commandEnv(p *plan.Plan, own []string) []string {
	env := maps.Clone(p.Env.Passed)
	if env == nil {
		env = map[string]string{}
	}
	for _, entry := range own {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return provide.CommandEnv(p, env)
}

// RefuseFullDisk refuses a run where the disk is full already.
func (e *Executor) RefuseFullDisk() error {
	free, err := e.CheckDisk()
	if errors.Is(err, provide.ErrDiskFull) {
		return &run.Failure{Code: "disk_full", Message: fmt.Sprintf("%d MiB are free below %s; at least %d must be, half of them as the reserve of Atoll itself", free>>20, e.Paths.AtollState, 2*provide.DiskReserve>>20)}
	}
	return err
}
