package provide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// overlayDir holds the overlays of every scope, below the state directory.
const overlayDir = "overlay"

// overlayRequest describes the overlay of one mount of a plan. Its directory is
// named by the scope and the target, so that it is found again by later plans.
func (s *Settings) overlayRequest(p *plan.Plan, index int) overlay.Request {
	mount, box := p.Mounts[index], p.Agent.Sandbox
	name := strconv.Itoa(0)
	if mount.Kind != policy.MountWorkspace {
		name = policy.DirName(mount.Target)
	}
	return overlay.Request{
		State: s.Paths.AtollState, Dir: filepath.Join(s.Paths.AtollState, overlayDir, p.Layout.Slug, name),
		Base: mount.Source, Target: mount.Target, Owner: overlayOwner(p, mount), Hide: hideFrom(p, mount, nil),
		Want: overlay.Kind(box.Overlay.Kind), Kernel: s.kernelMount(p.Spec.Backend),
		Empty:     box.Overlay.Empty,
		CopyLimit: overlay.Limit{Bytes: box.Overlay.CopyLimit.Size, Files: int(box.Overlay.CopyLimit.Files)},
	}
}

// overlayOwner returns the agent whose base it is. Several work trees share one
// repository, which has no owner.
func overlayOwner(p *plan.Plan, mount policy.Mount) string {
	if mount.Kind == policy.MountGit {
		return ""
	}
	return p.Spec.AgentID
}

// kernelMount says how a backend can mount overlays. An engine is not asked: what
// depends on it is found out when an overlay is prepared.
func (s *Settings) kernelMount(backend string) overlay.KernelMount {
	switch {
	case backend == BackendLinux:
		return overlay.KernelMount{Marks: linux.OverlayMarks(), Volatile: true}
	case os.Geteuid() != 0:
		return overlay.KernelMount{Why: "an engine mounts overlays as root, whose files this user could not read"}
	}
	return overlay.KernelMount{Marks: overlay.MarksTrusted}
}

// askEngine takes back what an engine cannot do after all.
func (a *Installation) askEngine(ctx context.Context, backend string, r *overlay.Request) error {
	if backend == BackendLinux || r.Kernel.Marks == "" {
		return nil
	}
	engine, err := a.Engine(ctx, backend)
	if err != nil {
		return err
	}
	why, err := engine.OverlayObstacle(ctx, r.Base, r.Dir)
	if err == nil && why != "" {
		r.Kernel = overlay.KernelMount{Why: why}
	}
	return err
}

// prepareOverlays makes what keeps the changes of a plan's sandbox apart, or opens
// what is there.
func (a *Installation) prepareOverlays(ctx context.Context, p *plan.Plan) error {
	indexes := p.Overlays()
	if len(indexes) == 0 {
		return nil
	}
	if err := a.checkMountedElsewhere(ctx, p); err != nil {
		return err
	}
	if err := a.markTemporaryOverlays(p); err != nil {
		return err
	}
	for _, i := range indexes {
		request := a.overlayRequest(p, i)
		request.Hide = hideFrom(p, p.Mounts[i], a.Logger)
		if err := a.askEngine(ctx, p.Spec.Backend, &request); err != nil {
			return err
		}
		t, err := overlay.Prepare(ctx, request)
		if err == nil {
			err = a.refreshStopped(ctx, p, t, request.Hide)
		}
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		if err := p.SetOverlay(i, t); err != nil {
			return err
		}
	}
	return nil
}

// checkMountedElsewhere refuses overlays that a running sandbox of the same scope
// and another name has mounted, as a change of the backend or of the prefix of
// names leaves it: two mounts of one overlay would damage its files.
func (a *Installation) checkMountedElsewhere(ctx context.Context, p *plan.Plan) error {
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.SessionKey != p.ScopeKey || e.Imported || e.ContainerName == p.Spec.Name || p.Net != nil && e.ContainerName == p.Net.Name {
			continue
		}
		alive, err := a.isAlive(ctx, e)
		if err != nil {
			return err
		}
		if alive {
			return errhint.With(fmt.Errorf("sandbox %q has the changes of this workspace mounted: %w", e.ContainerName, sandbox.ErrBusy),
				"remove it with `atoll rm "+e.ContainerName+"`: the changes stay")
		}
	}
	return nil
}

// isAlive reports whether a registered sandbox has processes.
func (a *Installation) isAlive(ctx context.Context, e *sandbox.Entry) (bool, error) {
	rt, err := a.Runtime(ctx, e.Backend)
	if err != nil {
		return false, err
	}
	inst, err := rt.Open(ctx, e.RuntimeName())
	if errors.Is(err, sandbox.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	state := inst.Seen().State
	return state == sandbox.StateRunning || state == sandbox.StatePaused, nil
}

// Overlays returns what keeps the changes of a subject's sandbox apart, that of
// the workspace first. There are none if nothing was ever made, and
// overlay.ErrNone if the subject has no overlay workspace.
func (s *Settings) Overlays(ctx context.Context, who Subject) ([]*overlay.Tree, error) {
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	return s.OverlaysOf(p)
}

// OverlaysOf returns the overlays of a plan's sandbox as Overlays does.
func (s *Settings) OverlaysOf(p *plan.Plan) (trees []*overlay.Tree, err error) {
	for _, i := range p.Overlays() {
		if p.Mounts[i].Kind == policy.MountGit {
			continue // its commits are taken, its files never are
		}
		t, err := overlay.Load(s.overlayRequest(p, i).Dir)
		if errors.Is(err, overlay.ErrNone) {
			continue
		} else if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	if trees == nil {
		return nil, fmt.Errorf("agent %s: %w", p.Agent.ID, overlay.ErrNone)
	}
	return trees, nil
}

// OverlayOf returns the directory that holds the overlays of a sandbox's scope; ""
// if there are none.
func (s *Settings) OverlayOf(entry *sandbox.Entry) string {
	dir := filepath.Join(s.Paths.AtollState, overlayDir, policy.DirName(entry.SessionKey))
	if _, err := os.Lstat(filepath.Join(dir, "0")); err != nil {
		return ""
	}
	return dir
}

// maxCounted bounds CountChanges.
const maxCounted = 1000

// CountChanges returns how many changes the overlays of a plan's sandbox have, up
// to maxCounted.
func (s *Settings) CountChanges(ctx context.Context, p *plan.Plan) (count int) {
	trees, err := s.OverlaysOf(p)
	if err != nil {
		return 0 // there are none
	}
	for _, t := range trees {
		for _, err := range t.Changes(ctx) {
			if err != nil || count == maxCounted {
				break
			}
			count++
		}
	}
	return count
}

// OverlayChoice is how the changes to one directory are kept apart.
type OverlayChoice struct {
	Target  string       `json:"target"`
	Base    string       `json:"base"`
	Kind    overlay.Kind `json:"kind,omitempty"`
	Why     string       `json:"why,omitempty"`
	Costs   []string     `json:"costs,omitzero"`    // what it cannot do
	Problem string       `json:"problem,omitempty"` // why there can be none
}

// ExplainOverlays returns how the changes of a plan's sandbox are kept apart, or
// would be. It changes nothing.
func (s *Settings) ExplainOverlays(ctx context.Context, p *plan.Plan) (all []OverlayChoice) {
	for _, i := range p.Overlays() {
		request := s.overlayRequest(p, i)
		choice := OverlayChoice{Target: request.Target, Base: request.Base}
		made, err := overlay.Choose(ctx, request)
		if err != nil {
			choice.Problem = err.Error()
		}
		choice.Kind, choice.Why, choice.Costs = made.Kind, made.Why, made.Costs
		if want := request.Want; err == nil && want != overlay.Auto && want != made.Kind {
			choice.Costs = append(choice.Costs, fmt.Sprintf("it stays a %s until its changes are discarded with atoll sync reset: then overlay.kind %s counts", made.Kind, want))
		}
		all = append(all, choice)
	}
	return all
}
