package app

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
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

	mend func(context.Context) error // does what Fix says; nil if that is not for this user alone to do
}

func good(name, format string, args ...any) Check {
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func bad(name string, err error) Check { return failed(name, err.Error(), errhint.Of(err)) }

func failed(name, detail, fix string) Check {
	return Check{Name: name, Status: CheckFailed, Detail: detail, Fix: fix}
}

func dubious(name, detail, fix string) Check {
	return Check{Name: name, Status: CheckWarning, Detail: detail, Fix: fix}
}

// Mend does what a finding's Fix says, if that needs neither root nor a decision.
// It reports whether there was anything to do.
func (c *Check) Mend(ctx context.Context) (bool, error) {
	if c.mend == nil {
		return false, nil
	}
	return true, c.mend(ctx)
}

// Examine looks at everything that a sandbox of the default agent needs.
func (a *App) Examine(ctx context.Context) []Check {
	var checks []Check
	for _, examine := range []func(context.Context) []Check{
		a.examineConfig, a.examineState, a.examineUsage, a.examineOutbound, a.examineGuest, a.examineWalls, a.examineLimits, a.examineEngine, a.examineAgents,
	} {
		checks = append(checks, examine(ctx)...)
	}
	return checks
}

func (a *App) examineConfig(context.Context) []Check {
	return append(a.examineOwnConfig(), a.examineProject()...)
}

// examineProject says whether the file of the working directory counts.
func (a *App) examineProject() []Check {
	const name = "project's file"
	switch {
	case a.Project == nil:
		return nil
	case a.Project.Trusted:
		return []Check{good(name, "%s, %s", a.Project.Path, a.Project.Why)}
	}
	fix := "atoll config trust"
	if a.Project.Project == nil {
		fix = "atoll config check " + a.Project.Path
	}
	return []Check{dubious(name, fmt.Sprintf("%s is not trusted: %s", a.Project.Path, a.Project.Why), fix)}
}

func (a *App) examineOwnConfig() []Check {
	const name = "configuration"
	path := a.Location.Path
	if path == "" {
		return []Check{good(name, "no file; built-in defaults, every session sandboxed")}
	}
	if n := len(a.Config.Warnings()); n > 0 {
		return []Check{dubious(name, fmt.Sprintf("%s, with %d warnings", path, n), "atoll config check")}
	}
	return []Check{good(name, "%s (%s)", path, a.Location.Source)}
}

func (a *App) examineState(ctx context.Context) []Check {
	n, err := a.Registry.Count(ctx)
	if err == nil {
		err = a.Registry.SetFact(ctx, "doctor.write", time.Now().UTC().Format(time.RFC3339))
	}
	if err != nil {
		return []Check{bad("state", err), a.examineDisk()}
	}
	return []Check{good("state", "%s, %d sandboxes registered", a.Paths.AtollState, n), a.examineDisk()}
}

// examineDisk looks at what is free where the state directory is.
func (a *App) examineDisk() Check {
	free, err := a.FreeBytes()
	switch {
	case err != nil:
		return bad("disk", err)
	case free < provide.DiskReserve:
		return bad("disk", a.DiskFull(free))
	case free < 2*provide.DiskReserve && !a.HasReserve():
		err := a.DiskFull(free)
		return dubious("disk", err.Error(), errhint.Of(err))
	}
	return good("disk", "%d MiB free below %s", free>>20, a.Paths.AtollState)
}

func (a *App) examineGuest(context.Context) []Check {
	if _, err := guestbin.For(runtime.GOARCH); err != nil {
		return []Check{bad("guest", err)}
	}
	return []Check{good("guest", "embedded for %s", runtime.GOARCH)}
}

// HostFix is the setting of this machine that keeps this user from making
// sandboxes without an engine, and what root does about it, as a script; "" if
// there is none.
func HostFix(program string) (what, script string) {
	found := linux.Restriction()
	return found.Name, found.Fix(program)
}

// examineEngine asks the chosen machinery whether it could make the default
// agent's sandbox.
func (a *App) examineEngine(ctx context.Context) []Check {
	p, err := a.Plan(provide.Subject{})
	if err != nil {
		return []Check{bad("engine", err)}
	}
	choice := a.Backend(ctx, p, "")
	backend, err := choice.Require()
	if err == nil {
		err = a.Fit(ctx, p, backend)
	}
	if err != nil {
		return []Check{bad("engine", err)}
	}
	if backend == provide.BackendLinux {
		return a.examineLinux(ctx, p, choice)
	}
	rt, err := a.Engine(ctx, backend)
	if err != nil {
		return []Check{bad("engine", err)}
	}
	version, err := rt.APIVersion(ctx)
	if err != nil {
		return []Check{bad("engine", err)}
	}
	checks := []Check{good("engine", "%s at %s, API %s", backend, a.EngineHost(backend), version)}
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
		return bad("image", err)
	case !has:
		return failed("image", ref+" is not there", "atoll images build sandbox")
	}
	return good("image", "%s", ref)
}

// examineLinux looks at the machinery that is this machine itself.
func (a *App) examineLinux(ctx context.Context, p *plan.Plan, choice provide.Backend) []Check {
	rt, err := a.Linux()
	if err != nil {
		return []Check{bad("engine", err)}
	}
	checks := append([]Check{good("engine", "none needed: linux, %s", choice.Reason)}, gapChecks(rt.Check(ctx, p.Spec))...)
	if provide.UsesHostPrograms(p.Agent) {
		return append(checks, good("image", "%s: the programs of this machine", provide.HostImage))
	}
	if a.ImportedImage(ctx, p.Spec.Image) == nil {
		return append(checks, failed("image", p.Spec.Image+" is not there", rootfs.ImportHint(p.Spec.Image)))
	}
	return append(checks, good("image", "%s", p.Spec.Image))
}

// examineAgents warns of agents that keep their character where it gets lost,
// and of settings that policy refuses.
func (a *App) examineAgents(context.Context) []Check {
	var checks []Check
	for _, id := range a.Config.Agents() {
		p, err := a.Plan(provide.Subject{AgentID: id})
		if err != nil {
			checks = append(checks, bad("agent "+id, err))
			continue
		}
		checks = append(checks, agentCheck(id, p))
	}
	return checks
}

func agentCheck(id string, p *plan.Plan) Check {
	name := "agent " + id
	if err := p.Refusal(); err != nil {
		return bad(name, err)
	}
	if p.Agent.Sandbox.WorkspaceAccess == config.AccessNone && p.Agent.Sandbox.Scope == config.ScopeAgent {
		if evolved, err := workspace.EvolvedInCopy(p.Layout); err == nil && len(evolved) > 0 {
			return dubious(name, "it wrote "+strings.Join(evolved, ", ")+" in its private copy, where the original never sees it",
				"set sandbox.workspaceAccess to rw, or copy the files from "+p.Layout.SandboxDir)
		}
	}
	return good(name, "%s, scope %s, access %s", p.Agent.Sandbox.Mode, p.Agent.Sandbox.Scope, p.Agent.Sandbox.WorkspaceAccess)
}
