package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// fillSpec writes the decisions down in the form that runtimes carry out.
func (p *Plan) fillSpec(r Request) error {
	docker := p.Agent.Sandbox.Docker
	name, err := policy.ContainerName(docker.ContainerPrefix, p.ScopeKey)
	if err != nil {
		return err
	}
	limits, err := limitsOf(docker)
	if err != nil {
		return err
	}
	limits.Defaults = defaultsOf(limits, r.Memory)
	if p.Layout.HasCopy() || p.Layout.Access == config.AccessOverlay {
		limits.Workspace = copyQuota(limits.Workspace)
	}
	dirs := policy.Dirs{Workspace: p.Layout.WorkspaceDir, Agent: p.Layout.AgentDir}
	p.Spec = &sandbox.Spec{
		Name:       name,
		ScopeKey:   p.ScopeKey,
		AgentID:    p.owner().ID,
		Account:    r.Account,
		ConfigHash: policy.ConfigHash(p.Agent.Sandbox, dirs),
		MountsHash: policy.MountsHash(p.Mounts),
		Temporary:  r.Temporary,
		MaxAgeSec:  maxAgeSec(p.owner()),

		Image:        docker.Image,
		Workdir:      docker.Workdir,
		User:         docker.User,
		Env:          p.Env.Passed,
		SetupCommand: docker.SetupCommand,

		ReadOnlyRoot:    docker.ReadOnlyRoot,
		Tmpfs:           tmpfsOf(docker.Tmpfs),
		Mounts:          mountsOf(p.Mounts, r.Paths.AtollState),
		Network:         p.isolatedNetwork(),
		DNS:             docker.DNS,
		ExtraHosts:      docker.ExtraHosts,
		CapDrop:         docker.CapDrop,
		SeccompProfile:  docker.SeccompProfile,
		AppArmorProfile: docker.AppArmorProfile,
		GPUs:            docker.GPUs,
		Limits:          limits,
	}
	if !r.Temporary {
		p.Spec.Settings = policy.Settings(p.Agent.Sandbox, dirs)
	}
	p.fillPair()
	return nil
}

// isolatedNetwork is the network of the sandbox that every call works in unless
// a list sends it to the networked half: none if there is such a half.
func (p *Plan) isolatedNetwork() string {
	if p.Router.Paired() {
		return "none"
	}
	return p.Agent.Sandbox.Docker.Network
}

// fillPair describes the networked half: the same sandbox under another name,
// with a network, or with egress where none is configured. It shares the mounts, so that pinning them pins both.
func (p *Plan) fillPair() {
	if !p.Router.Paired() {
		return
	}
	net := *p.Spec
	net.NetworkedHalf = true
	net.Name, net.Network = policy.PairName(p.Spec.Name), policy.PairNetwork(p.Agent.Sandbox.Docker.Network)
	p.Net = &net
}

func tmpfsOf(entries []string) []sandbox.Tmpfs {
	var list []sandbox.Tmpfs
	for _, entry := range entries {
		t := policy.SplitTmpfs(entry)
		list = append(list, sandbox.Tmpfs{Target: t.Target, Options: t.Options})
	}
	return list
}

// mountsOf returns the mounts as runtimes need them. Private copies below the
// state directory are enclosed by it.
func mountsOf(mounts []policy.Mount, state string) []sandbox.Mount {
	var list []sandbox.Mount
	for _, m := range mounts {
		mount := sandbox.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly, Kind: sandbox.MountKind(m.Kind), Relabel: m.Relabel}
		mount.Enclosed = m.Overlay || mount.Kind == sandbox.MountWorkspace && isBelow(state, m.Source)
		if m.Overlay {
			mount.Overlay = &sandbox.OverlayMount{} // filled in when it is prepared; runtimes refuse it as it is
		}
		list = append(list, mount)
	}
	return list
}

// Overlays returns the indexes of the mounts whose changes are kept apart.
func (p *Plan) Overlays() (indexes []int) {
	for i, m := range p.Mounts {
		if m.Overlay {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// SetOverlay makes a mount of the spec the overlay that was prepared for it.
func (p *Plan) SetOverlay(index int, t *overlay.Tree) error {
	mount := &p.Spec.Mounts[index]
	if t.Kind == overlay.Kernel {
		mount.Overlay = &sandbox.OverlayMount{Dir: t.Dir, Marks: t.Marks, Volatile: t.Volatile}
		return nil
	}
	canonical, err := hostpath.Disk{}.Canonical(t.Source())
	if err != nil {
		return fmt.Errorf("mount %s: %w", mount.Target, err)
	}
	mount.Base, mount.Source, mount.Overlay = mount.Source, t.Source(), nil
	p.canonical[index] = canonical
	p.Spec.Limits.Workspace.AddBegun(t.Began.Bytes, int64(t.Began.Files))
	if p.Net != nil {
		p.Net.Limits.Workspace = p.Spec.Limits.Workspace
	}
	return nil
}

// isBelow reports whether path lies below dir.
func isBelow(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && below != "." && filepath.IsLocal(below)
}

func limitsOf(docker config.Docker) (sandbox.Limits, error) {
	l := sandbox.Limits{Pids: docker.PidsLimit, CPUs: docker.CPUs}
	l.IO = sandbox.IO{Weight: docker.BlkioWeight, ReadIOps: docker.DeviceReadIOps, WriteIOps: docker.DeviceWriteIOps}
	for _, size := range []struct {
		key  string
		from config.Size
		to   *int64
	}{
		{"memory", docker.Memory, &l.Memory}, {"memorySwap", docker.MemorySwap, &l.MemorySwap},
		{"deviceReadBps", docker.DeviceReadBps, &l.IO.ReadBps}, {"deviceWriteBps", docker.DeviceWriteBps, &l.IO.WriteBps},
		{"storageOpt.size", docker.StorageOpt["size"], &l.Storage.Size}, {"storageOpt.inodes", docker.StorageOpt["inodes"], &l.Storage.Inodes},
		{"workspaceLimit.size", docker.WorkspaceLimit["size"], &l.Workspace.Size}, {"workspaceLimit.files", docker.WorkspaceLimit["files"], &l.Workspace.Files},
	} {
		var err error
		if *size.to, err = bytesOf(size.from); err != nil {
			return l, fmt.Errorf("sandbox.docker.%s: %w", size.key, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(docker.Ulimits)) {
		soft, hard, err := docker.Ulimits[name].Values()
		if err != nil {
			return l, fmt.Errorf("sandbox.docker.ulimits.%s %w", name, err)
		}
		l.Ulimits = append(l.Ulimits, sandbox.Ulimit{Name: name, Soft: soft, Hard: hard})
	}
	return l, nil
}

// What a private copy of a workspace may hold unless the configuration says
// otherwise, and what it must leave on the disk. A workspace that an agent works
// in itself (rw) is its owner's, who may keep there what he likes.
const (
	CopySize    = config.CopySize
	CopyFiles   = config.CopyFiles
	CopyReserve = 256 << 20
)

func copyQuota(asked sandbox.WorkspaceQuota) sandbox.WorkspaceQuota {
	return sandbox.WorkspaceQuota{Size: cmp.Or(asked.Size, CopySize), Files: cmp.Or(asked.Files, CopyFiles), Reserve: CopyReserve}
}

// bytesOf is 0 for a size that was not written.
func bytesOf(s config.Size) (int64, error) {
	if s == (config.Size{}) {
		return 0, nil
	}
	return s.Bytes()
}

// Pin notes which files the mount sources are right now, so that a runtime can
// refuse a source that is exchanged before it is mounted. A source that leads
// elsewhere than when it was judged is refused here.
func (p *Plan) Pin() error {
	for i, m := range p.Spec.Mounts {
		facts, err := hostpath.Identify(m.Source)
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		if !facts.Exists {
			return fmt.Errorf("mount %s: %s does not exist", m.Target, m.Source)
		}
		if facts.Canonical != p.canonical[i] {
			return fmt.Errorf("mount %s: %s was exchanged while the sandbox was prepared: %w", m.Target, m.Source, sandbox.ErrDenied)
		}
		p.Spec.Mounts[i].Device, p.Spec.Mounts[i].Inode = facts.Device, facts.Inode
	}
	return nil
}

// maxAgeSec is how old sandboxes of an agent may get, in seconds. Those that programs make have a deadline
// of their own.
func maxAgeSec(agent *config.Agent) int64 {
	if agent.ID == config.APIAgent {
		return 0
	}
	return int64(agent.Sandbox.Prune.MaxAgeDays) * 24 * 60 * 60
}
