package provide

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath/projectquota"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// PlanPool plans a sandbox for the pool of an agent, under a name of its own. It has no
// account and no session. Why says why there can be none; "" if there can.
func (a *Installation) PlanPool(ctx context.Context, agent string) (p *plan.Plan, why string, err error) {
	who := ownSandbox(Subject{SessionKey: "agent:" + agent + ":pool-" + strings.ToLower(rand.Text()), Temporary: true, Adjust: adjustPool})
	if p, err = a.Plan(who); err != nil {
		return nil, "", err
	}
	if err := p.Refusal(); err != nil {
		return nil, "", err
	}
	if _, err := a.chooseBackend(ctx, p); err != nil {
		return nil, "", err
	}
	if p.Net != nil {
		return p, "it is half of a network pair", nil
	}
	p.Spec.Hostname = sandbox.PoolHostname
	why, err = a.Manager.Unpoolable(ctx, p.Spec)
	return p, why, errors.Join(err, a.removeEgress(p.Spec.Name))
}

// adjustPool gives agent api what every sandbox has that a program makes.
func adjustPool(agent *config.Agent) {
	if agent.ID == config.APIAgent {
		agent.Sandbox.WorkspaceAccess = config.AccessNone
	}
}

// MakePooled makes the sandbox of a plan of PlanPool, with an empty directory as its
// workspace. On failure nothing is left.
func (a *Installation) MakePooled(ctx context.Context, p *plan.Plan) (err error) {
	if err := a.roomFor(p); err != nil {
		return err
	}
	held, err := a.HoldCopy(ctx, p.Layout.WorkspaceDir)
	if err != nil {
		return err
	}
	defer held()
	quota := p.Spec.Limits.Workspace
	o := workspace.Options{User: ownerOf(p.Spec), Quota: projectquota.Limits{Bytes: quota.Size, Files: quota.Files}}
	if err := workspace.MakeEmpty(ctx, p.Layout, o); err != nil {
		return err
	}
	if err = p.Pin(); err == nil {
		err = a.Manager.MakePooled(ctx, sandbox.PoolSpec(p.Spec, p.Spec.Name, p.Layout.WorkspaceDir))
	}
	if err != nil {
		return errors.Join(err, workspace.Remove(context.WithoutCancel(ctx), p.Layout))
	}
	return nil
}

// RemovePooled removes a sandbox that waits in a pool, with its directory. ErrBusy if it is
// being made, claimed or removed.
func (a *Installation) RemovePooled(ctx context.Context, entry *sandbox.Entry) error {
	if err := a.Manager.Remove(ctx, entry.ContainerName, isPooled); err != nil {
		return err
	}
	layout, ok := workspace.CopyAt(entry.WorkspaceDir)
	if !ok {
		return nil
	}
	return a.ifUnused(ctx, entry.WorkspaceDir, func() error { return workspace.Remove(ctx, layout) })
}

// removePools removes every sandbox of a pool while no gateway runs, which would fill them
// again.
func (a *Installation) removePools(ctx context.Context) (done []sandbox.Removal) {
	if filled, err := a.Locks.IsHeld(GatewayLock); filled || err != nil {
		return nil
	}
	if err := a.DropKeptPools(ctx); err != nil {
		a.Logger.WarnContext(ctx, "pools not removed", "error", err)
	}
	entries, err := a.Registry.Pooled(ctx)
	if err != nil {
		a.Logger.WarnContext(ctx, "sandboxes of pools not found", "error", err)
	}
	for _, e := range entries {
		if err := a.RemovePooled(ctx, e); !errors.Is(err, sandbox.ErrBusy) {
			done = append(done, sandbox.Removal{Entry: e, Reason: "of a pool, and no gateway runs", Err: err})
		}
	}
	return done
}

// GatewayLock is the name of the lock that a gateway holds on its state directory.
const GatewayLock = "gateway"

// takePooled takes a sandbox for a plan out of a pool and makes its directory the plan's
// private copy; nil if none fits. What the plan asks later must not change its shape.
func (a *Installation) takePooled(ctx context.Context, who Subject, p *plan.Plan) *sandbox.Claim {
	if a.poolsAreKept(p.Spec) || p.Net != nil || who.Amend != nil && !who.KeepsShape || !p.Layout.HasCopy() {
		return nil
	}
	spec := *p.Spec
	if spec.Hostname = sandbox.PoolHostname; sandbox.Unpoolable(&spec) != "" {
		return nil
	}
	if _, err := os.Lstat(p.Layout.SandboxDir); !errors.Is(err, fs.ErrNotExist) {
		return nil // its files are there already
	}
	claim, err := a.Manager.Reserve(ctx, &spec)
	if err == nil && claim != nil {
		err = a.adoptPooled(ctx, p, claim)
	}
	if err != nil {
		a.Logger.WarnContext(ctx, "no sandbox of a pool was taken", "sandbox", p.Spec.Name, "error", err)
		claim.Release(ctx)
		claim = nil
	}
	member := ""
	if claim != nil {
		p.Spec.Hostname, p.Spec.Claim, member = sandbox.PoolHostname, claim, claim.Name()
	}
	if a.Claimed != nil {
		a.Claimed(p.Spec, member)
	}
	return claim
}

// adoptPooled makes the directory of a claim the private copy of a plan.
func (a *Installation) adoptPooled(ctx context.Context, p *plan.Plan, claim *sandbox.Claim) error {
	pooled, ok := workspace.CopyAt(claim.Workspace())
	if !ok {
		return errors.New("its workspace is not there")
	}
	return workspace.Adopt(ctx, p.Layout, pooled)
}

// keepShape gives up a claim if the plan asks for another shape by now.
func keepShape(p *plan.Plan) {
	if c := p.Spec.Claim; c != nil && sandbox.Shape(p.Spec) != c.Shape() {
		p.Spec.Claim = nil
	}
}
