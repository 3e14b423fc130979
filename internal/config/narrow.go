package config

import (
	"maps"
	"slices"
)

// FromProject is the source of the origin of a value that a project's file lowered.
const FromProject = "project"

// Narrow returns the configuration with what a project's file takes away from
// it: tools it denies, lower limits, less access. Nothing else of the file
// counts.
func (c *Config) Narrow(p *Project) *Config {
	narrowed := *c
	narrowed.limits = &p.limits
	return &narrowed
}

// agent narrows the settings of one agent by the file's defaults and by what it
// says about the agent itself.
func (n *projectLimits) agent(a *Agent) {
	if n == nil {
		return
	}
	tools := orEmpty(n.file.Tools)
	a.HostTools = a.HostTools && !isFalse(tools.Host)
	a.deny(tools.Deny, tools.Sandbox)
	defaults := orEmpty(orEmpty(n.file.Agents).Defaults)
	a.narrow(defaults.Sandbox, defaults.LLM)
	for i := range n.agents {
		if own := &n.agents[i]; own.id == a.ID {
			tools := orEmpty(own.Tools)
			a.HostTools = a.HostTools && !isFalse(tools.Host)
			a.deny(tools.Deny, tools.Sandbox)
			a.narrow(own.Sandbox, own.LLM)
		}
	}
}

// deny adds tools that the project's file denies. What it denies in sandboxes
// is denied everywhere.
func (a *Agent) deny(all []string, sandboxed *sandboxToolsFile) {
	inside := orEmpty(orEmpty(sandboxed).Tools).Deny
	a.AllTools.Project.Deny = slices.Concat(a.AllTools.Project.Deny, all, inside)
}

func (a *Agent) narrow(s *sandboxFile, l *agentLLMFile) {
	before := a.Sandbox
	a.Sandbox.narrow(orEmpty(s))
	a.LLM.narrow(orEmpty(l))
	noteNarrowed(a.Origins, &before, &a.Sandbox)
}

func (s *Sandbox) narrow(f *sandboxFile) {
	if f.WorkspaceAccess != nil && accessOrder[*f.WorkspaceAccess] < accessOrder[s.WorkspaceAccess] {
		s.WorkspaceAccess = *f.WorkspaceAccess
	}
	s.narrowNetwork(f)
	if f.AllowSecretEnv != nil {
		s.AllowSecretEnv = nil
	}
	s.Overlay.narrow(orEmpty(f.Overlay))
	s.Sync.narrow(orEmpty(f.Sync))
	s.Egress.narrow(orEmpty(f.Egress))
	s.Docker.narrow(orEmpty(f.Docker))
	s.narrowBrowser(orEmpty(f.Browser))
}

// accessOrder has the least access first.
var accessOrder = map[Access]int{AccessNone: 0, AccessRO: 1, AccessOverlay: 2, AccessRW: 3}

// narrowNetwork takes networks away. A sandbox that loses its networked half
// has no network at all: the network of the configuration was that half's.
func (s *Sandbox) narrowNetwork(f *sandboxFile) {
	paired := len(s.NetworkAllow)+len(s.NetworkExecAllow) > 0
	none := orEmpty(f.Docker).Network != nil
	if f.NetworkAllow != nil || none {
		s.NetworkAllow = nil
	}
	if f.NetworkExecAllow != nil || none {
		s.NetworkExecAllow = nil
	}
	if none || paired && len(s.NetworkAllow)+len(s.NetworkExecAllow) == 0 {
		s.Docker.Network = "none"
	}
}

func (d *Docker) narrow(f *dockerFile) {
	d.ReadOnlyRoot = d.ReadOnlyRoot || f.ReadOnlyRoot != nil
	for _, capability := range f.CapDrop {
		if !slices.Contains(d.CapDrop, capability) {
			d.CapDrop = append(slices.Clone(d.CapDrop), capability)
		}
	}
	if d.PidsLimit > 0 || f.PidsLimit != nil && *f.PidsLimit <= enginePids {
		lower(&d.PidsLimit, f.PidsLimit)
	}
	lower(&d.CPUs, f.CPUs)
	lowerSize(&d.Memory, f.Memory)
	lowerSize(&d.DeviceReadBps, f.DeviceReadBps)
	lowerSize(&d.DeviceWriteBps, f.DeviceWriteBps)
	lower(&d.DeviceReadIOps, f.DeviceReadIOps)
	lower(&d.DeviceWriteIOps, f.DeviceWriteIOps)
	d.WorkspaceLimit = lowerRoom(d.WorkspaceLimit, f.WorkspaceLimit)
	d.AllowReservedTargets = d.AllowReservedTargets && f.AllowReservedTargets == nil
	d.AllowExternalSources = d.AllowExternalSources && f.AllowExternalSources == nil
	d.AllowNamespaceJoin = d.AllowNamespaceJoin && f.AllowNamespaceJoin == nil
}

func isFalse(b *bool) bool { return b != nil && !*b }

// lower takes the smaller of two limits; 0 is no limit.
func lower[T int | int64 | float64](limit, other *T) {
	if other != nil && *other > 0 && (*limit <= 0 || *other < *limit) {
		*limit = *other
	}
}

// lowerSize is lower for sizes, which keep their written form.
func lowerSize(limit, other *Size) {
	if other == nil {
		return
	}
	now, _ := limit.Bytes() // not written is no limit
	if asked, err := other.Bytes(); err == nil && asked > 0 && (now <= 0 || asked < now) {
		*limit = *other
	}
}

// enginePids is the pids limit that an engine may set by itself. Without a
// configured limit a project's file may only ask for less.
const enginePids = 2048

// copyRoom is what a private copy may hold if nothing is configured.
var copyRoom = map[string]int64{"size": CopySize, "files": CopyFiles}

// lowerRoom lowers what a workspace may hold. What is not configured counts as
// the room of a private copy.
func lowerRoom(room, asked map[string]Size) map[string]Size {
	lowered := maps.Clone(room)
	for name, other := range asked {
		size, configured := lowered[name]
		if bytes, err := other.Bytes(); !configured && (err != nil || bytes > copyRoom[name]) {
			continue
		}
		lowerSize(&size, &other)
		if lowered == nil {
			lowered = map[string]Size{}
		}
		lowered[name] = size
	}
	return lowered
}
