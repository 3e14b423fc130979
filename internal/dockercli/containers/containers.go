// Package containers keeps the containers of the docker front end in sandboxes.
package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/dockercli/fastpath"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Sandboxes are the sandboxes behind the containers of the docker front end.
type Sandboxes struct {
	in   *provide.Installation
	open func(context.Context) (*provide.Installation, error)
	dir  string
	// state is the state directory.
	state string
}

var _ dockercli.Sandboxes = (*Sandboxes)(nil)

// New returns the sandboxes of the installation in force. It is opened when it
// is first needed.
func New(s *provide.Settings, open func(context.Context) (*provide.Installation, error)) *Sandboxes {
	return &Sandboxes{open: open, dir: ContainersDir(s.Paths.AtollState), state: s.Paths.AtollState}
}

// ContainersDir is where the docker front end keeps its records.
func ContainersDir(state string) string { return filepath.Join(state, dockercli.RecordsDir) }

// Dir is where records are kept.
func (b *Sandboxes) Dir() string { return b.dir }

// use opens the installation.
func (b *Sandboxes) use(ctx context.Context) (_ *provide.Installation, err error) {
	if b.in == nil {
		b.in, err = b.open(ctx)
	}
	return b.in, err
}

// Lock keeps others from changing a container.
func (b *Sandboxes) Lock(ctx context.Context, name string) (func(), error) {
	in, err := b.use(ctx)
	if err != nil {
		return nil, err
	}
	held, err := in.Manager.Leases.Hold(ctx, dockercli.LockName(name))
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// Held reports whether another process holds a lock.
func (b *Sandboxes) Held(name string) bool {
	if b.in == nil {
		return false
	}
	held, err := b.in.Manager.Leases.TryHold(dockercli.LockName(name))
	if err == nil {
		held.Release()
	}
	return errors.Is(err, filelock.ErrHeld)
}

// Make makes the sandbox of a container, after policy has looked at it.
//
// It does not go through provide.Provide, which makes a session's sandbox from the
// configuration, starts it and opens its guest. A container is made from what the
// command line asks, must not be started by `create`, has no workspace of an agent
// to prepare, and may already exist, which is an error here. The same rules of policy
// and the same choice of a runtime hold: specOf, backendFor.
func (b *Sandboxes) Make(ctx context.Context, c *dockercli.Container) error {
	in, err := b.use(ctx)
	if err != nil {
		return err
	}
	in.PruneIfDue(ctx)
	spec, err := specOf(in, c)
	if err != nil {
		return err
	}
	numbered := *spec // what the runtime without an engine is asked for
	var unknown error
	if numbered.User, unknown = numericUser(ctx, in, c); unknown != nil {
		numbered.User = spec.User
	}
	if spec.Backend, err = backendFor(ctx, in, &numbered); err != nil {
		return err
	}
	if spec.Backend == provide.BackendLinux {
		if unknown != nil {
			return unknown
		}
		spec.User = numbered.User
	}
	c.Backend = spec.Backend
	return asDocker(in.Manager.Make(ctx, spec))
}

// numericUser returns the UID and GID of a container's user, by the password file
// of its image: without an engine nothing else reads it.
func numericUser(ctx context.Context, in *provide.Installation, c *dockercli.Container) (string, error) {
	images, err := in.Images()
	if err != nil {
		return "", err
	}
	uid, gid, err := images.Account(ctx, c.Image, cmp.Or(c.User, "0:0"))
	return fmt.Sprintf("%d:%d", uid, gid), err
}

// backendFor chooses the machinery of a container as for a session's sandbox.
// An image that is named must be found under its name: without an engine that
// is one that was imported.
func backendFor(ctx context.Context, in *provide.Installation, spec *sandbox.Spec) (string, error) {
	p, err := in.Plan(provide.Subject{})
	if err != nil {
		return "", err
	}
	if spec.Image == "" && p.Agent.Sandbox.Backend == provide.BackendAuto {
		p.Agent.Sandbox.Backend = provide.BackendDocker // which has images without being asked for one
	}
	p.Spec, p.Net = spec, nil
	p.Agent.Sandbox.Docker.Image = spec.Image
	p.Agent.Origins["sandbox.docker.image"] = config.Origin{Source: "call"}
	return in.Backend(ctx, p, "").Require()
}

// specOf turns what was asked for into a spec, or says why it is denied. The
// rules are those of a configuration that names its mounts itself.
func specOf(in *provide.Installation, c *dockercli.Container) (*sandbox.Spec, error) {
	asked := dockerConfig(c)
	host := policy.Host{Disk: hostpath.Disk{}, Homes: hostpath.Homes(in.Getenv), Private: plan.PrivatePaths(in.Paths.AtollState)}
	if findings := policy.Validate(asked, host); len(findings) > 0 {
		return nil, denied(findings)
	}
	spec := &sandbox.Spec{
		Name: c.Name, ScopeKey: "docker:" + c.Name, AgentID: provide.DockerAgent, Image: c.Image, Hostname: c.Hostname, Workdir: cmp.Or(c.Workdir, "/"),
		User: cmp.Or(c.User, "0:0"), // docker's meaning of none, also where an ordinary user makes it
		Env:  variables(c.Env), ReadOnlyRoot: c.ReadOnly, Network: networkOf(c), DNS: c.DNS, ExtraHosts: c.ExtraHosts,
		CapDrop: []string{"ALL"}, SeccompProfile: c.Seccomp, AppArmorProfile: c.AppArmor, GPUs: c.GPUs, Limits: sandboxLimits(c.Limits),
	}
	for _, target := range slices.Sorted(maps.Keys(c.Tmpfs)) {
		spec.Tmpfs = append(spec.Tmpfs, sandbox.Tmpfs{Target: target, Options: c.Tmpfs[target]})
	}
	for _, m := range c.Mounts {
		mount, err := mountOf(m, c.Workdir)
		if err != nil {
			return nil, err
		}
		spec.Mounts = append(spec.Mounts, mount)
	}
	spec.ConfigHash = cmp.Or(c.Labels[sandbox.LabelConfigHash], c.ID)
	spec.MountsHash = c.ID
	return spec, nil
}

// networkOf is the network of a container's sandbox: a browser of OpenClaw's has none.
func networkOf(c *dockercli.Container) string {
	if c.Network == dockercli.BrowserNetwork {
		return "none"
	}
	return cmp.Or(c.Network, "none")
}

func sandboxLimits(l dockercli.Limits) sandbox.Limits {
	limits := sandbox.Limits{Pids: l.Pids, Memory: l.Memory, MemorySwap: l.MemorySwap, CPUs: l.CPUs}
	for _, u := range l.Ulimits {
		limits.Ulimits = append(limits.Ulimits, sandbox.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return limits
}

// dockerConfig is a container as a configuration would ask for it.
func dockerConfig(c *dockercli.Container) config.Docker {
	d := config.Docker{
		Image: c.Image, Workdir: cmp.Or(c.Workdir, "/workspace"), Network: networkOf(c), User: c.User, CapDrop: c.CapDrop, SeccompProfile: c.Seccomp,
		AppArmorProfile: c.AppArmor, DNS: c.DNS, ExtraHosts: c.ExtraHosts, AllowReservedTargets: true, AllowExternalSources: true,
	}
	if d.Workdir == "/" {
		d.Workdir = "/workspace" // nothing is mounted there for being the workdir
	}
	for target, options := range c.Tmpfs {
		d.Tmpfs = append(d.Tmpfs, strings.TrimSuffix(target+":"+options, ":"))
	}
	for _, m := range c.Mounts {
		bind := m.Source + ":" + m.Target
		if m.ReadOnly {
			bind += ":ro"
		}
		d.Binds = append(d.Binds, bind)
	}
	return d
}

// denied is everything that policy found, in one error.
func denied(findings []policy.Finding) error {
	var all []error
	var hints []string
	for _, f := range findings {
		all, hints = append(all, errors.New(f.Message)), append(hints, f.Hint)
	}
	return errhint.With(fmt.Errorf("%w: %w", sandbox.ErrDenied, errors.Join(all...)), strings.Join(slices.Compact(hints), " "))
}

// mountOf notes which directory a mount's source is right now.
func mountOf(m dockercli.Mount, workdir string) (sandbox.Mount, error) {
	mount := sandbox.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly, Kind: sandbox.MountBind}
	if m.Target == workdir {
		mount.Kind = sandbox.MountWorkspace
	}
	for option := range strings.SplitSeq(m.Mode, ",") {
		if option == "z" || option == "Z" {
			mount.Relabel = option
		}
	}
	facts, err := hostpath.Identify(m.Source)
	if err != nil {
		return mount, err
	}
	if !facts.Exists {
		return mount, errhint.With(fmt.Errorf("invalid mount config for type \"bind\": bind source path does not exist: %s", m.Source), "make the directory first")
	}
	mount.Device, mount.Inode = facts.Device, facts.Inode
	return mount, nil
}

func variables(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		m[name] = value
	}
	return m
}

// State is where the sandbox of a container is in its life.
func (b *Sandboxes) State(ctx context.Context, c *dockercli.Container) (dockercli.State, error) {
	in, err := b.use(ctx)
	if err != nil {
		return "", err
	}
	state, err := in.Manager.State(ctx, c.Name)
	return dockercli.State(state), asDocker(err)
}

// asDocker adds the front end's kind to an error.
func asDocker(err error) error {
	for _, row := range []struct{ ours, theirs error }{
		{sandbox.ErrNotFound, dockercli.ErrNoSandbox}, {sandbox.ErrNoImage, dockercli.ErrNoImage},
		{sandbox.ErrExists, dockercli.ErrNameTaken}, {sandbox.ErrForeign, dockercli.ErrNameTaken},
	} {
		if errors.Is(err, row.ours) {
			return &alsoIs{err, row.theirs}
		}
	}
	return err
}

// alsoIs is an error that is also of another kind.
type alsoIs struct {
	error
	kind error
}

func (k *alsoIs) Unwrap() []error { return []error{k.error, k.kind} }

// Start starts the sandbox of a container.
func (b *Sandboxes) Start(ctx context.Context, c *dockercli.Container) error {
	in, err := b.use(ctx)
	if err != nil {
		return err
	}
	return asDocker(in.Manager.Change(ctx, c.Name, func(i sandbox.Instance) error {
		if err := i.Start(ctx); err != nil {
			return err
		}
		c.Guest = nil
		if w, ok := i.(sandbox.WireInfo); ok {
			socket, pid := w.Wire()
			c.Guest = dockercli.NewGuest(socket, pid, sandbox.UseLock(c.Name))
		}
		return nil
	}))
}

// End ends whatever runs in the sandbox of a container.
func (b *Sandboxes) End(ctx context.Context, c *dockercli.Container) error {
	in, err := b.use(ctx)
	if err != nil {
		return err
	}
	return in.Manager.ForceStop(ctx, c.Name)
}

// Pause holds the sandbox of a container, or lets it go on.
func (b *Sandboxes) Pause(ctx context.Context, c *dockercli.Container, paused bool) error {
	in, err := b.use(ctx)
	if err != nil {
		return err
	}
	return in.Manager.Pause(ctx, c.Name, paused)
}

// Remove takes the sandbox of a container away.
func (b *Sandboxes) Remove(ctx context.Context, c *dockercli.Container) error {
	in, err := b.use(ctx)
	if err != nil {
		return err
	}
	return in.Manager.ForceRemove(ctx, c.Name)
}

// Enter returns the wire into the sandbox of a container.
func (b *Sandboxes) Enter(ctx context.Context, c *dockercli.Container) (*machine.Machine, func(), error) {
	in, err := b.use(ctx)
	if err != nil {
		return nil, nil, err
	}
	h, err := in.Manager.Attach(ctx, c.Name)
	if err != nil {
		return nil, nil, asDocker(err)
	}
	return h.Machine, h.Release, nil
}

// Copy copies files as `atoll sandbox cp` does.
func (b *Sandboxes) Copy(ctx context.Context, files *guestfs.Files, c *dockercli.Copy) ([]string, error) {
	job := provide.Copy{Inside: c.Inside, Host: c.Host, Stream: struct {
		io.Reader
		io.Writer
	}{c.In, c.To}}
	if c.Out {
		return provide.CopyOut(ctx, files, c.Inside, job)
	}
	return provide.CopyIn(ctx, files, c.Inside, job)
}

// AdmitEnv refuses variables by the rules of every sandbox. The passwords that OpenClaw
// makes for the endpoints of its own browser are no secrets of anything outside.
func (b *Sandboxes) AdmitEnv(env []string) error {
	return fastpath.AdmitEnv(env, func(name string) bool {
		return name == "OPENCLAW_BROWSER_CDP_AUTH_TOKEN" || name == "OPENCLAW_BROWSER_NOVNC_PASSWORD"
	})
}

// browserNetworkID is the id of the network for OpenClaw's browsers, everywhere the same.
const browserNetworkID = "0000000000000000000000000000000000000000000000000000000000000001"

// Networks is the one that OpenClaw wants for its browsers: a sandbox has its wire.
func (b *Sandboxes) Networks(context.Context) ([]dockercli.Network, error) {
	return []dockercli.Network{{Name: dockercli.BrowserNetwork, ID: browserNetworkID, Driver: "atoll-egress"}}, nil
}

// Backend says which machinery the next sandbox is made with.
func (b *Sandboxes) Backend(ctx context.Context) string {
	in, err := b.use(ctx)
	if err != nil {
		return "none"
	}
	backend, _ := backendFor(ctx, in, &sandbox.Spec{})
	return backend
}
