// Package doctor examines an installation: what a sandbox needs of this machine,
// what is missing, and the command that repairs it.
package doctor

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// CheckStatus is the outcome of one examination.
type CheckStatus string

// The outcomes: in order, worth a look, in the way.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarning CheckStatus = "warning"
	CheckFailed  CheckStatus = "failed"
)

// Check is one finding about this machine, and the command that mends it.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Fix    string      `json:"fix,omitempty"`

	repair func(context.Context) error // does what Fix says; nil if that is not for this user alone to do
}

func passed(name, format string, args ...any) Check {
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func failedWith(name string, err error) Check { return failed(name, err.Error(), errhint.Of(err)) }

func failed(name, detail, fix string) Check {
	return Check{Name: name, Status: CheckFailed, Detail: detail, Fix: fix}
}

func warned(name, detail, fix string) Check {
	return Check{Name: name, Status: CheckWarning, Detail: detail, Fix: fix}
}

// Repair does what a finding's Fix says, if that needs neither root nor a decision.
// It reports whether there was anything to do.
func (c *Check) Repair(ctx context.Context) (bool, error) {
	if c.repair == nil {
		return false, nil
	}
	return true, c.repair(ctx)
}

// Doctor examines an installation.
type Doctor struct {
	*provide.Installation
	Usage UsageJournal
}

// UsageJournal is the journal of what models cost.
type UsageJournal interface {
	// CheckUsage returns an error if the journal and the database disagree.
	CheckUsage(ctx context.Context) error
	// RepairUsage makes them agree.
	RepairUsage(ctx context.Context) (*usage.Repaired, error)
}

// Examine looks at everything that a sandbox of the default agent needs.
func (d *Doctor) Examine(ctx context.Context) []Check {
	var checks []Check
	for _, check := range []func(context.Context) []Check{
		d.checkConfig, d.checkState, d.checkUsage, d.checkOutbound, d.checkGuest, d.checkKernel, d.checkLimits, d.checkEngine, d.checkAgents,
	} {
		checks = append(checks, check(ctx)...)
	}
	return checks
}

// checkUsage checks the journal of usage, which can be repaired.
func (d *Doctor) checkUsage(ctx context.Context) []Check {
	if err := d.Usage.CheckUsage(ctx); err != nil {
		found := failedWith("usage", err)
		found.repair = func(ctx context.Context) error {
			_, err := d.Usage.RepairUsage(ctx)
			return err
		}
		return []Check{found}
	}
	return []Check{passed("usage", "the journal and the database agree")}
}

func (d *Doctor) checkConfig(context.Context) []Check {
	return append(d.checkOwnConfig(), d.checkProject()...)
}

// checkProject says whether the file of the working directory counts.
func (d *Doctor) checkProject() []Check {
	const name = "project's file"
	switch {
	case d.Project == nil:
		return nil
	case d.Project.Trusted:
		return []Check{passed(name, "%s, %s", d.Project.Path, d.Project.Why)}
	}
	fix := "atoll config trust"
	if d.Project.Project == nil {
		fix = "atoll config check " + d.Project.Path
	}
	return []Check{warned(name, fmt.Sprintf("%s is not trusted: %s", d.Project.Path, d.Project.Why), fix)}
}

func (d *Doctor) checkOwnConfig() []Check {
	const name = "configuration"
	path := d.Location.Path
	if path == "" {
		return []Check{passed(name, "no file; built-in defaults, every session sandboxed")}
	}
	if n := len(d.Config.Warnings()); n > 0 {
		return []Check{warned(name, fmt.Sprintf("%s, with %d warnings", path, n), "atoll config check")}
	}
	return []Check{passed(name, "%s (%s)", path, d.Location.Source)}
}

func (d *Doctor) checkState(ctx context.Context) []Check {
	n, err := d.Registry.Count(ctx)
	if err == nil {
		err = d.Registry.SetFact(ctx, "doctor.write", time.Now().UTC().Format(time.RFC3339))
	}
	if err != nil {
		return []Check{failedWith("state", err), d.checkDisk()}
	}
	return []Check{passed("state", "%s, %d sandboxes registered", d.Paths.AtollState, n), d.checkDisk()}
}

// checkDisk looks at what is free where the state directory is.
func (d *Doctor) checkDisk() Check {
	free, err := d.FreeBytes()
	switch {
	case err != nil:
		return failedWith("disk", err)
	case free < provide.DiskReserve:
		return failedWith("disk", d.DiskFull(free))
	case free < 2*provide.DiskReserve && !d.HasReserve():
		err := d.DiskFull(free)
		return warned("disk", err.Error(), errhint.Of(err))
	}
	return passed("disk", "%d MiB free below %s", free>>20, d.Paths.AtollState)
}

func (d *Doctor) checkGuest(context.Context) []Check {
	if _, err := guestbin.For(runtime.GOARCH); err != nil {
		return []Check{failedWith("guest", err)}
	}
	return []Check{passed("guest", "embedded for %s", runtime.GOARCH)}
}

// checkEngine asks the chosen machinery whether it could make the default
// agent's sandbox.
func (d *Doctor) checkEngine(ctx context.Context) []Check {
	p, err := d.Plan(provide.Subject{})
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	choice := d.Backend(ctx, p, "")
	backend, err := choice.Require()
	if err == nil {
		err = d.Fit(ctx, p, backend)
	}
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	switch backend {
	case provide.BackendLinux:
		return d.checkLinux(ctx, p, choice)
	case provide.BackendKubernetes:
		return d.checkElsewhere(ctx, p, backend)
	}
	rt, err := d.Engine(ctx, backend)
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	version, err := rt.APIVersion(ctx)
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	checks := []Check{passed("engine", "%s at %s, API %s", backend, d.EngineHost(backend), version)}
	checks = append(checks, gapChecks(rt.Check(ctx, p.Spec))...)
	return append(checks, imageCheck(ctx, rt, p.Spec.Image))
}

func gapChecks(gaps []sandbox.Gap) (checks []Check) {
	for _, gap := range gaps {
		checks = append(checks, failed("engine: "+gap.Field, gap.Reason, gap.Remedy))
	}
	return checks
}

func imageCheck(ctx context.Context, engine interface {
	HasImage(ctx context.Context, ref string) (bool, error)
}, ref string) Check {
	switch has, err := engine.HasImage(ctx, ref); {
	case err != nil:
		return failedWith("image", err)
	case !has:
		return failed("image", ref+" is not there", "atoll images build sandbox")
	}
	return passed("image", "%s", ref)
}

// checkLinux looks at the machinery that is this machine itself.
func (d *Doctor) checkLinux(ctx context.Context, p *plan.Plan, choice provide.Backend) []Check {
	rt, err := d.Linux()
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	checks := append([]Check{passed("engine", "none needed: linux, %s", choice.Reason)}, gapChecks(rt.Check(ctx, p.Spec))...)
	if provide.UsesHostPrograms(p.Agent) {
		return append(checks, passed("image", "%s: the programs of this machine", provide.HostImage))
	}
	if d.ImportedImage(ctx, p.Spec.Image) == nil {
		return append(checks, failed("image", p.Spec.Image+" is not there", rootfs.ImportHint(p.Spec.Image)))
	}
	return append(checks, passed("image", "%s", p.Spec.Image))
}

// checkAgents warns of agents that keep their character where it gets lost,
// and of settings that policy refuses.
func (d *Doctor) checkAgents(context.Context) []Check {
	var checks []Check
	for _, id := range d.Config.Agents() {
		p, err := d.Plan(provide.Subject{AgentID: id})
		if err != nil {
			checks = append(checks, failedWith("agent "+id, err))
			continue
		}
		checks = append(checks, agentCheck(id, p))
	}
	return checks
}

func agentCheck(id string, p *plan.Plan) Check {
	name := "agent " + id
	if err := p.Refusal(); err != nil {
		return failedWith(name, err)
	}
	if p.Agent.Sandbox.WorkspaceAccess == config.AccessNone && p.Agent.Sandbox.Scope == config.ScopeAgent {
		if evolved, err := workspace.EvolvedInCopy(p.Layout); err == nil && len(evolved) > 0 {
			return warned(name, "it wrote "+strings.Join(evolved, ", ")+" in its private copy, where the original never sees it",
				"set sandbox.workspaceAccess to rw, or copy the files from "+p.Layout.SandboxDir)
		}
	}
	return passed(name, "%s, scope %s, access %s", p.Agent.Sandbox.Mode, p.Agent.Sandbox.Scope, p.Agent.Sandbox.WorkspaceAccess)
}
