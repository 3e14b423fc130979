package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/memory"
	"github.com/atoll-run/atoll/internal/config"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Dir holds the workspaces of runs, below the state directory.
const Dir = "runs"

// orderFile says what was made for a run, and is written before anything is.
const orderFile = "order.json"

func (e *Executor) dir(id string) string { return filepath.Join(e.Paths.AtollState, Dir, id) }

// Sandbox is the sandbox of one run.
type Sandbox struct {
	runs   *Runs
	order  run.SandboxRequest
	ready  *provide.ReadySandbox // nil until it is entered
	grant  *service.ModelGrant
	egress *egress.Egress // of grant; nil if the agent has none
	terms  *grant.Terms   // of grant
	work   *relay.Work    // nil if no branch was asked for
	branch *filelock.Lock // while it is worked on
	// unchanged says that the overlay of a run on a directory has nothing to keep.
	unchanged bool
}

// Make provides the sandbox of a run.
func (r *Runs) Make(ctx context.Context, o *run.SandboxRequest) (run.Sandbox, error) {
	p := &Sandbox{runs: r, order: *o, branch: o.BranchLock}
	if err := p.begin(); err != nil {
		p.releaseBranch()
		return nil, err
	}
	err := p.beginOverlay(ctx)
	if err == nil {
		_, err = p.Ready(ctx)
	}
	if err == nil {
		err = p.prepareWork(ctx)
	}
	if err != nil {
		p.unchanged = true
		return nil, errors.Join(err, p.Remove(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// begin writes the order down before anything is made, for a process that recovers.
func (p *Sandbox) begin() error {
	dir := p.runs.executor.dir(p.order.Run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("workspace of the run: %w", err)
	}
	text, err := json.Marshal(&p.order)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, orderFile), text, 0o600); err != nil {
		return fmt.Errorf("workspace of the run: %w", err)
	}
	return nil
}

// Find returns what an earlier process made for a run.
func (r *Runs) Find(_ context.Context, id string) (run.Sandbox, error) {
	dir := r.executor.dir(id)
	text, err := os.ReadFile(filepath.Join(dir, orderFile))
	p := &Sandbox{runs: r}
	if err == nil {
		err = json.Unmarshal(text, &p.order)
	}
	switch {
	case err == nil && p.order.Run == id:
		return p, nil
	case err == nil, errors.Is(err, fs.ErrNotExist), len(text) == 0:
		return nil, os.RemoveAll(dir) // nothing was made: that comes after the order
	}
	return nil, fmt.Errorf("%s: %w", orderFile, err)
}

// Name is the sandbox's.
func (p *Sandbox) Name() string {
	if p.ready == nil {
		return ""
	}
	return p.ready.Name
}

// Image is what the sandbox is made of.
func (p *Sandbox) Image() string {
	if p.ready == nil {
		return ""
	}
	return p.ready.Plan.Spec.Image
}

// Ready is the sandbox, made or started again if need be.
func (p *Sandbox) Ready(ctx context.Context) (*provide.ReadySandbox, error) {
	if p.ready != nil {
		return p.ready, nil
	}
	session, err := p.runs.executor.provideRun(ctx, &p.order)
	if err != nil {
		return nil, err
	}
	p.ready = session
	return session, nil
}

// provideRun is Provide for a run: a sandbox of its own, without a network.
func (e *Executor) provideRun(ctx context.Context, o *run.SandboxRequest) (*provide.ReadySandbox, error) {
	if err := e.RefuseFullDisk(); err != nil {
		return nil, err
	}
	who := e.subject(o)
	who.MostSandboxes = e.limits.ofRun(o.Run).Sandboxes
	first := who.Amend
	who.Amend = func(ctx context.Context, p *plan.Plan) error {
		if first != nil {
			if err := first(ctx, p); err != nil {
				return err
			}
		}
		return e.amendRun(ctx, p, o)
	}
	who.KeepsShape = first == nil && len(o.Mounts)+len(o.Volumes) == 0
	box, err := e.Provide(ctx, who, provide.Options{})
	if errors.Is(err, provide.ErrQuota) {
		return nil, &run.Failure{Code: "quota_exceeded", Message: err.Error()}
	}
	return box, err
}

// amendRun adds the mounts and volumes of a run's variant, and refuses a run that
// asked for more memory than its sandbox may have.
func (e *Executor) amendRun(ctx context.Context, p *plan.Plan, o *run.SandboxRequest) error {
	if most := p.Spec.Limits.Memory; o.MemoryAsked && most < o.Memory {
		return run.TooMuchMemory(o.Memory, most)
	}
	for _, m := range o.Mounts {
		mount, err := pinned(m)
		if err != nil {
			return &sandbox.ProvisionError{Name: p.Spec.Name, Step: "mounts", Err: err}
		}
		p.Spec.Mounts = append(p.Spec.Mounts, mount)
	}
	if err := e.addVolumes(ctx, p.Spec, o.Volumes); err != nil {
		return &sandbox.ProvisionError{Name: p.Spec.Name, Step: "volumes", Err: err}
	}
	return nil
}

// addVolumes gives a sandbox the volumes that were filled, each with a layer of
// its own on top. Where none was, or can be, a program does without.
func (e *Executor) addVolumes(ctx context.Context, spec *sandbox.Spec, names []string) error {
	if !slices.Contains(provide.VolumeBackends, spec.Backend) {
		return nil
	}
	for _, name := range names {
		v, err := e.Volume(ctx, spec.Backend, name)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		spec.Volumes = append(spec.Volumes, sandbox.Volume{Name: v.Engine, Target: v.Path, Private: true})
	}
	return nil
}

// pinned notes which file a variant's own mount is right now. It is named by our
// program, not by a configuration: policy has nothing to say about it.
func pinned(m run.Mount) (sandbox.Mount, error) {
	facts, err := hostpath.Identify(m.Source)
	if err != nil {
		return sandbox.Mount{}, err
	}
	if !facts.Exists {
		return sandbox.Mount{}, fmt.Errorf("%s does not exist", m.Source)
	}
	return sandbox.Mount{
		Source: facts.Canonical, Target: m.Target, ReadOnly: true, Kind: sandbox.MountProgram, Device: facts.Device, Inode: facts.Inode,
	}, nil
}

// subject is the agent of a run in a session of its own, with what the order asks.
func (e *Executor) subject(o *run.SandboxRequest) provide.Subject {
	if o.Directory != "" {
		return e.directorySubject(o)
	}
	return provide.Subject{SessionKey: run.SessionOf(o.Agent, o.Run), Account: o.Account, Memory: o.Memory, Adjust: func(agent *config.Agent) { e.adjustRun(agent, o) }}
}

func (e *Executor) adjustRun(agent *config.Agent, o *run.SandboxRequest) {
	box := &agent.Sandbox
	box.Scope, box.WorkspaceAccess, box.WorkspaceRoot = config.ScopeSession, config.AccessNone, e.dir(o.Run)
	limitRun(agent, o)
}

// limitRun gives an agent the limits, the image and the user of a run, and no network.
func limitRun(agent *config.Agent, o *run.SandboxRequest) {
	box := &agent.Sandbox
	box.NetworkAllow, box.NetworkExecAllow, box.Docker.Network = nil, nil, "none"
	// What a variant is made for is a default: it holds where the machine can
	// enforce it. What was asked for, here or in the configuration, must hold.
	limit, err := box.Docker.Memory.Bytes()
	if unset := err != nil || limit <= 0; unset && o.MemoryAsked || !unset && limit > o.Memory {
		box.Docker.Memory = config.Size{Text: strconv.FormatInt(o.Memory, 10)}
	}
	if o.Image != "" {
		box.Docker.Image, box.Docker.SetupCommand = o.Image, "" // what was to be set up is another image's
		agent.Origins["sandbox.docker.image"] = config.Origin{Source: "agent", Path: "the run's variant"}
	}
	for _, bind := range o.Binds { // a run changes nothing of the host's
		box.Docker.Binds = append(slices.Clip(box.Docker.Binds), strings.TrimSuffix(bind, ":ro")+":ro")
	}
	if o.User != "" && os.Geteuid() == 0 { // others cannot give files away: it is theirs
		box.Docker.User = o.User
		agent.Origins["sandbox.docker.user"] = config.Origin{Source: "agent", Path: "the run's variant"}
	}
}

// maxMemories bounds what of an agent's memories goes with a run.
const maxMemories = 16 << 20

// memories are what the agent has written down on the host. Other behaviour files
// are there already; these belong to the agent, which here has no other copy.
func (p *Sandbox) memories(ctx context.Context, dir string) (files []run.File, err error) {
	texts, left, err := memory.Texts(dir, maxMemories)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if left > 0 {
		p.runs.executor.Logger.WarnContext(ctx, "memories that do not go with the run", "run", p.order.Run, "files", left)
	}
	for _, t := range texts {
		files = append(files, run.File{Path: t.Path, Mode: 0o600, Data: []byte(t.Body)})
	}
	return files, err
}

// Write puts files into the home, which is the workspace of a run that has one of its
// own, as the user inside; the agent's memories with them, which a directory has itself.
func (p *Sandbox) Write(ctx context.Context, files []run.File) error {
	s, err := p.Ready(ctx)
	if err != nil {
		return err
	}
	to, err := provide.FilesOf(s.Handle, s.Plan.Spec)
	if err != nil {
		return err
	}
	if p.order.Directory == "" {
		memories, err := p.memories(ctx, s.Plan.Layout.AgentDir)
		if err != nil {
			return err
		}
		files = append(memories, files...)
	}
	for _, f := range files {
		path := filepath.Join(cmp.Or(s.Plan.Home, s.Plan.Spec.Workdir), f.Path)
		_, err := to.Write(ctx, path, f.Data, &guestfs.WriteOptions{Mode: fs.FileMode(f.Mode), MkdirAll: true, Exclusive: f.Default})
		if err != nil && (!f.Default || !errors.Is(err, fs.ErrExist)) {
			return err
		}
	}
	return nil
}

// Grant opens the port of the models for what is executed from now on.
func (p *Sandbox) Grant(ctx context.Context, terms *grant.Terms) (func(context.Context) error, error) {
	s, err := p.Ready(ctx)
	if err != nil {
		return nil, err
	}
	models, err := p.runs.proxy()
	if err != nil {
		return nil, err
	}
	allowed, err := service.Terms(s.Plan, terms.Account, terms.Models)
	if err != nil {
		return nil, err
	}
	if terms.BodyPolicy = allowed.BodyPolicy; terms.BodyPolicy == "" {
		terms.BodyPolicy = proxy.StrictPolicy
	}
	terms.Budget.Day = p.runs.executor.limits.ofRun(terms.Run).MicroUSD
	if p.grant, err = models.Grant(ctx, s, terms); err != nil {
		return nil, err
	}
	p.terms = terms
	if err := p.openEgress(ctx, s); err != nil {
		return nil, errors.Join(err, p.grant.Close())
	}
	return func(context.Context) error { return errors.Join(p.egress.Close(), p.grant.Close()) }, nil
}

// openEgress gives the run the egress of its agent, under the grant.
func (p *Sandbox) openEgress(ctx context.Context, s *provide.ReadySandbox) (err error) {
	p.egress, err = p.runs.executor.egress.Open(ctx, s.Handle, s.Plan, egress.Options{Config: egress.Of(policy.HalfIsolated), Account: p.order.Account, Grant: p.grant.Grant})
	return err
}

// Denied implements run.Denier.
func (p *Sandbox) Denied() []string { return p.egress.AllDenials() }

// Remove removes the sandbox and the workspace.
func (p *Sandbox) Remove(ctx context.Context) error {
	e := p.runs.executor
	if p.ready != nil {
		p.ready.Release()
		p.ready = nil
	}
	p.releaseBranch()
	planned, err := e.Plan(e.subject(&p.order))
	if err != nil {
		return p.removeUnplanned(ctx, err)
	}
	switch {
	case p.order.Directory != "":
		return p.removeOverlaid(ctx, planned)
	case p.isKept():
		return p.removeKept(ctx, planned)
	}
	return p.removeAll(ctx, planned)
}

// removeAll wipes the workspace while the machinery takes the sandbox away, which
// can last longer. What still ran there may have kept it from that: then it is
// done again. The order goes last, so that a process that finds it finishes this.
func (p *Sandbox) removeAll(ctx context.Context, planned *plan.Plan) error {
	e := p.runs.executor
	early := make(chan error, 1)
	go func() { early <- workspace.Remove(ctx, planned.Layout) }()
	err := e.Manager.ForceRemove(ctx, planned.Spec.Name)
	if wiped := <-early; err == nil && wiped != nil {
		err = workspace.Remove(ctx, planned.Layout)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(e.dir(p.order.Run))
}

// removeUnplanned removes what a configuration made that is no longer there: the
// registry knows its name.
func (p *Sandbox) removeUnplanned(ctx context.Context, reason error) error {
	e := p.runs.executor
	entries, err := e.Registry.List(ctx, 0)
	if err != nil || p.isKept() {
		return errors.Join(reason, err)
	}
	for _, entry := range entries {
		if filepath.Dir(entry.WorkspaceDir) == e.dir(p.order.Run) || p.order.Directory != "" && entry.WorkspaceDir == p.order.Directory && strings.EqualFold(entry.SessionKey, run.SessionOf(p.order.Agent, p.order.Run)) {
			if err := e.Manager.ForceRemove(ctx, entry.ContainerName); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(e.dir(p.order.Run))
}
