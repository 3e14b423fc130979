package provide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/hostpath/projectquota"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/store"
)

// ReadySandbox is the sandbox of a session, ready for work.
type ReadySandbox struct {
	*sandbox.Handle
	Plan *plan.Plan
	Net  *sandbox.Handle // the networked half, if it was asked for and there is one
	in   *Installation
	end  func() // what Installation.Follow returned; nil if there is none

	stopFollowing func() // ends what hands edits of the host over; nil if nothing does
}

// Release ends the use of every sandbox of the session.
func (s *ReadySandbox) Release() {
	if s.end != nil {
		s.end()
	}
	if s.stopFollowing != nil {
		s.stopFollowing()
	}
	s.Handle.Release()
	if s.Net != nil {
		s.Net.Release()
	}
}

// Options are what a caller of Provide wants besides the session's sandbox.
type Options struct {
	// Pair makes both halves of a network pair ready, where the session has one.
	Pair bool
}

// Provide makes the sandbox of a session ready: prune if it is time, decide,
// prepare the host directories, ensure. It sandboxes whatever the mode says;
// asking whether a session should be sandboxed is the caller's part.
func (a *Installation) Provide(ctx context.Context, who Subject, c Options) (*ReadySandbox, error) {
	p, fresh, err := a.decide(ctx, who)
	if err != nil {
		return nil, err
	}
	held, err := a.HoldCopy(ctx, p.Layout.WorkspaceDir)
	if err != nil {
		return nil, err
	}
	defer held()
	var claim *sandbox.Claim
	if fresh {
		claim = a.takePooled(ctx, who, p)
	}
	defer func() { claim.Release(ctx) }()
	if fresh && !c.Pair && who.Amend == nil && claim == nil {
		defer a.prestart(p.Spec)()
	}
	notices, err := a.prepareHost(ctx, p)
	if err != nil {
		return nil, err
	}
	if who.Amend != nil {
		if err := who.Amend(ctx, p); err != nil {
			return nil, err
		}
	}
	if c.Pair {
		if err := a.extendImage(ctx, p); err != nil {
			return nil, err
		}
	}
	keepShape(p)
	s, err := a.ensure(ctx, who, p, c.Pair)
	if err != nil {
		return nil, err
	}
	if err := a.followHost(ctx, s); err != nil {
		s.Release()
		return nil, err
	}
	s.Notices = append(notices, s.Notices...)
	if a.Follow != nil {
		s.end = a.Follow(p)
	}
	return s, nil
}

// ensure makes the sandbox of a plan, or both halves, within the account's quota.
func (a *Installation) ensure(ctx context.Context, who Subject, p *plan.Plan, pair bool) (*ReadySandbox, error) {
	release, err := a.holdQuota(ctx, who, p)
	if err != nil {
		return nil, err
	}
	defer release()
	if pair {
		return a.ensureHalves(ctx, p)
	}
	h, err := a.Manager.Ensure(ctx, p.Spec)
	if err != nil {
		return nil, err
	}
	a.noteKept(p.Spec, h)
	return &ReadySandbox{Handle: h, Plan: p, in: a}, nil
}

// decide plans the sandbox and chooses its backend. It is fresh if none of its
// name is registered.
func (a *Installation) decide(ctx context.Context, who Subject) (p *plan.Plan, fresh bool, err error) {
	a.PruneIfDue(ctx)
	if p, err = a.Plan(a.forkOf(ctx, who)); err != nil {
		return nil, false, err
	}
	if err := p.Refusal(); err != nil {
		return nil, false, err
	}
	if p.Agent.ID == config.APIAgent && !who.Made {
		return nil, false, errhint.With(fmt.Errorf("agent %s has only the sandboxes that programs make: %w", config.APIAgent, sandbox.ErrDenied), "make one with `atoll create`, or name another agent")
	}
	if fresh, err = a.chooseBackend(ctx, p); err != nil {
		return nil, false, &sandbox.ProvisionError{Name: p.Spec.Name, Step: "backend", Err: err}
	}
	return p, fresh, a.checkExact(ctx, p, who.Exact)
}

// checkExact refuses, before anything is prepared, a sandbox that was made with other
// settings than a call asks for.
func (a *Installation) checkExact(ctx context.Context, p *plan.Plan, exact bool) error {
	if !exact {
		return nil
	}
	for _, spec := range specs(p) {
		spec.Exact = true
		if err := a.Manager.Permits(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

func (a *Installation) prepareHost(ctx context.Context, p *plan.Plan) ([]string, error) {
	err := a.roomFor(p)
	var notices []string
	if err == nil {
		notices, err = a.prepare(ctx, p)
		notices = append(notices, a.plainImage(ctx, p)...)
	}
	if err != nil {
		return nil, &sandbox.ProvisionError{Name: p.Spec.Name, Step: "workspace", Err: err}
	}
	return notices, nil
}

// prestart starts the init process of a new sandbox while the rest is prepared,
// where the backend can do that. done is called when the sandbox was made.
func (s *Settings) prestart(spec *sandbox.Spec) (done func()) {
	if spec.Backend != BackendLinux {
		return func() {}
	}
	rt, err := s.linux()
	if err != nil {
		return func() {}
	}
	return rt.Prestart(spec)
}

// PruneIfDue removes sandboxes that are idle or old, if it was not done lately.
func (a *Installation) PruneIfDue(ctx context.Context) { a.logPruned(ctx, a.Manager.PruneIfDue) }

// PruneAhead does so earlier than PruneIfDue would.
func (a *Installation) PruneAhead(ctx context.Context) { a.logPruned(ctx, a.Manager.PruneAhead) }

func (a *Installation) logPruned(ctx context.Context, prune func(context.Context, func(string) sandbox.PruneLimits) ([]sandbox.Removal, error)) {
	removed, err := prune(ctx, a.PruneLimits)
	if err != nil && ctx.Err() == nil {
		a.Logger.WarnContext(ctx, "prune", "error", err)
	}
	for _, r := range removed {
		a.Logger.InfoContext(ctx, "pruned", "sandbox", r.Entry.ContainerName, "reason", r.Reason, "error", r.Err)
	}
}

// PruneLimits are the limits of one agent's sandboxes. An agent that is no
// longer configured has those of the default agent.
func (a *Installation) PruneLimits(agentID string) sandbox.PruneLimits {
	if agentID == DockerAgent || agentID == config.APIAgent {
		return sandbox.PruneLimits{} // it stays until docker rm, or until its deadline
	}
	agent, err := a.Config.Resolve(agentID)
	if err != nil {
		agent, err = a.Config.Resolve(a.Config.DefaultAgent())
	}
	if err != nil {
		return sandbox.PruneLimits{}
	}
	p := agent.Sandbox.Prune
	return sandbox.PruneLimits{Idle: time.Duration(p.IdleHours) * time.Hour, Age: time.Duration(p.MaxAgeDays) * 24 * time.Hour}
}

// chooseBackend finishes a plan for the backend that it is to have. Fresh says
// that no sandbox of that name is registered.
func (a *Installation) chooseBackend(ctx context.Context, p *plan.Plan) (fresh bool, err error) {
	stored, err := storedBackend(ctx, a.Registry, p.Spec.Name)
	if err != nil {
		return false, err
	}
	backend, err := a.Backend(ctx, p, stored).Require()
	if err != nil {
		return false, err
	}
	if err := a.Fit(ctx, p, backend); err != nil {
		return false, err
	}
	if err := a.fitShared(ctx, p); err != nil {
		return false, err
	}
	return stored == "", a.refuseEarly(ctx, p, stored)
}

// refuseEarly refuses a new sandbox of a runtime that the program brought along before
// anything is prepared on this host, which that runtime may have no use for.
func (a *Installation) refuseEarly(ctx context.Context, p *plan.Plan, stored string) error {
	if stored != "" || a.Runtimes[p.Spec.Backend] == nil {
		return nil
	}
	return a.Manager.Refusal(ctx, p.Spec)
}

// Choose chooses the backend of a plan and finishes the plan for it, without
// making anything.
func (s *Settings) Choose(ctx context.Context, p *plan.Plan) (Backend, error) {
	choice := s.Backend(ctx, p, s.StoredBackend(ctx, p.Spec.Name))
	return choice, s.Fit(ctx, p, choice.Effective)
}

// StoredBackend is the backend that a sandbox was made with, "" if that is not
// known. It makes no state directory where there is none.
func (s *Settings) StoredBackend(ctx context.Context, name string) string {
	path := filepath.Join(s.Paths.AtollState, databaseFile)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	db, err := store.Open(ctx, path)
	if err != nil {
		return ""
	}
	defer db.Close()
	backend, _ := storedBackend(ctx, sandbox.NewRegistry(db), name)
	return backend
}

func storedBackend(ctx context.Context, registry *sandbox.Registry, name string) (string, error) {
	entry, err := registry.Get(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return entry.Backend, nil
}

// prepare makes the host directories ready and pins the mounts to them.
func (a *Installation) prepare(ctx context.Context, p *plan.Plan) (notices []string, err error) {
	quota := p.Spec.Limits.Workspace
	report, err := workspace.Prepare(ctx, p.Layout, workspace.Options{
		User: ownerOf(p.Spec), Quota: projectquota.Limits{Bytes: quota.Size, Files: quota.Files},
	})
	if err != nil {
		return nil, err
	}
	if err := a.prepareOverlays(ctx, p); err != nil {
		return nil, err
	}
	notices = append(WarningTexts(report.Warnings), a.syncSkills(ctx, p)...)
	for _, blocked := range p.Env.Blocked {
		notices = append(notices, fmt.Sprintf("environment variable %s does not enter the sandbox: %s", blocked.Name, blocked.Reason))
	}
	return append(notices, p.Env.Warnings...), p.Pin()
}

// ownerOf is the owner of the host's copy of a workspace. A pod has a copy of its own, so an
// ordinary user keeps the one here.
func ownerOf(spec *sandbox.Spec) *hostpath.Owner {
	if spec.Backend == BackendKubernetes && os.Geteuid() != 0 {
		return &hostpath.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	}
	return numericUser(spec.User)
}

// numericUser is a docker.user that is a pair of numbers; nil if it is a name.
func numericUser(user string) *hostpath.Owner {
	uid, gid, ok := strings.Cut(user, ":")
	if !ok {
		gid = uid
	}
	u, errU := strconv.Atoi(uid)
	g, errG := strconv.Atoi(gid)
	if errU != nil || errG != nil {
		return nil
	}
	return &hostpath.Owner{UID: u, GID: g}
}

// syncSkills mirrors the agent's skills into its copy. It never fails a session.
func (a *Installation) syncSkills(ctx context.Context, p *plan.Plan) []string {
	if !p.Layout.HasCopy() {
		return nil
	}
	return WarningTexts(workspace.SyncSkills(ctx, p.Layout, a.syncOptions(p)).Warnings)
}

// SkillOptions are the skills that the agent of a plan may use.
func (a *Installation) SkillOptions(p *plan.Plan) workspace.SkillOptions {
	roots := append(p.SharedSkillRoots(), a.skillRoots()...)
	return workspace.SkillOptions{Roots: roots, Allowed: p.Agent.Skills, Readable: readable(p.Tools)}
}

// syncOptions are the skills that the sandbox of a plan needs: in scope "shared"
// those of all its agents, so that no agent removes the skills of another.
func (a *Installation) syncOptions(p *plan.Plan) workspace.SkillOptions {
	o := a.SkillOptions(p)
	o.Allowed = p.Skills()
	if len(p.Sharers) > 1 {
		o.Readable = nil
	}
	return o
}

// skillRoots hold the skills of all agents, besides each agent's own.
func (a *Installation) skillRoots() []string {
	roots := []string{filepath.Join(a.Paths.AtollState, "skills")}
	if a.isOpenClaws() {
		roots = append(roots, filepath.Join(a.Paths.OpenClawState, "skills"))
	}
	return slices.DeleteFunc(roots, func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir()
	})
}

// WarningTexts returns warnings as texts, each with its hint.
func WarningTexts(warnings []workspace.Warning) (texts []string) {
	for _, w := range warnings {
		text := w.String()
		if w.Hint != "" {
			text += " (" + w.Hint + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

// readable lets skills in only where the read tool could show them.
func readable(tools policy.ToolPolicy) func(string) bool {
	allowed := tools.Decide("read").Allowed
	return func(string) bool { return allowed }
}

// Discard removes a sandbox that was made for one command and its private copy, or
// its overlays with all changes; ErrBusy if it is in use.
func (a *Installation) Discard(ctx context.Context, p *plan.Plan) error {
	if err := a.Manager.Discard(ctx, p.Spec.Name); err != nil {
		return err
	}
	if p.Net != nil {
		if err := a.Manager.Discard(ctx, p.Net.Name); err != nil {
			return err
		}
	}
	return a.IfGone(ctx, p.Spec.Name, func() error {
		if !p.Layout.HasCopy() && p.Layout.Temporary {
			return overlay.RemoveAll(ctx, filepath.Join(a.Paths.AtollState, overlayDir, p.Layout.Slug))
		}
		return workspace.Remove(ctx, p.Layout)
	})
}

// CommandEnv is the environment of one command: what policy lets in, and the
// few variables that programs expect, which belong to the inside.
func CommandEnv(p *plan.Plan, passed map[string]string) []string {
	env := map[string]string{"HOME": cmp.Or(p.Home, p.Spec.Workdir), "PATH": cmp.Or(p.SearchPath, DefaultPath)}
	maps.Copy(env, passed)
	return sandbox.EnvList(env)
}

// DefaultPath is the search path inside, unless the image has its own. The host's
// never enters.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
