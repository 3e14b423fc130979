package config

import "strings"

// orEmpty lets the merge read a level that was not written.
func orEmpty[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// sandbox merges sandbox.*.
func (m *merge) sandbox() (Sandbox, error) {
	agent, global, base := orEmpty(m.agent.Sandbox), orEmpty(m.global.Sandbox), builtin()
	base.Mode = m.cfg.defaultMode
	s := Sandbox{
		Mode:                   pick(m, "sandbox.mode", agent.Mode, global.Mode, base.Mode),
		Scope:                  m.scope(agent, global, base.Scope),
		Backend:                normalBackend(pick(m, "sandbox.backend", agent.Backend, global.Backend, base.Backend)),
		WorkspaceAccess:        pick(m, "sandbox.workspaceAccess", agent.WorkspaceAccess, global.WorkspaceAccess, base.WorkspaceAccess),
		SessionToolsVisibility: pick(m, "sandbox.sessionToolsVisibility", nil, global.SessionToolsVisibility, base.SessionToolsVisibility),
	}
	root, err := m.workspaceRoot(agent, global)
	if err != nil {
		return Sandbox{}, err
	}
	s.WorkspaceRoot = root
	if s.Scope == ScopeShared {
		// One sandbox for all agents: what would make it differ is not theirs.
		agent = &sandboxFile{}
	}
	s.NetworkAllow = pickList(m, "sandbox.networkAllow", agent.NetworkAllow, global.NetworkAllow, nil)
	s.NetworkExecAllow = pickList(m, "sandbox.networkExecAllow", agent.NetworkExecAllow, global.NetworkExecAllow, nil)
	s.AllowSecretEnv = pickList(m, "sandbox.dangerouslyAllowSecretEnv", agent.AllowSecretEnv, global.AllowSecretEnv, nil)
	if s.Overlay, err = m.overlay(orEmpty(agent.Overlay), orEmpty(global.Overlay)); err != nil {
		return Sandbox{}, err
	}
	if s.Sync, err = m.sync(orEmpty(agent.Sync), orEmpty(global.Sync)); err != nil {
		return Sandbox{}, err
	}
	s.settleAccess()
	if s.Egress, err = m.egress(egressKey, orEmpty(agent.Egress), orEmpty(global.Egress)); err != nil {
		return Sandbox{}, err
	}
	s.Docker = m.docker(orEmpty(agent.Docker), orEmpty(global.Docker), base.Docker)
	if s.Browser, err = m.browser(orEmpty(agent.Browser), orEmpty(global.Browser)); err != nil {
		return Sandbox{}, err
	}
	s.Prune = m.prune(orEmpty(agent.Prune), orEmpty(global.Prune), base.Prune)
	return s, nil
}

func normalBackend(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// scope merges scope and, only where neither level has it, the old perSession.
func (m *merge) scope(agent, global *sandboxFile, fallback Scope) Scope {
	const key = "sandbox.scope"
	if agent.Scope != nil || global.Scope != nil {
		return pick(m, key, agent.Scope, global.Scope, fallback)
	}
	return pickNamed(m, naming{key, "sandbox.perSession"}, agent.legacyScope(), global.legacyScope(), fallback)
}

func (m *merge) workspaceRoot(agent, global *sandboxFile) (string, error) {
	const key = "sandbox.workspaceRoot"
	root := pick(m, key, agent.WorkspaceRoot, global.WorkspaceRoot, "")
	if root != "" {
		return m.cfg.hostPath(root)
	}
	return m.cfg.stateFile("sandboxes")
}

// docker merges sandbox.docker.*.
func (m *merge) docker(agent, global *dockerFile, base Docker) Docker {
	const at = "sandbox.docker."
	d := Docker{
		Image:           pick(m, at+"image", agent.Image, global.Image, base.Image),
		ContainerPrefix: pick(m, at+"containerPrefix", agent.ContainerPrefix, global.ContainerPrefix, base.ContainerPrefix),
		Workdir:         pick(m, at+"workdir", agent.Workdir, global.Workdir, base.Workdir),
		ReadOnlyRoot:    pick(m, at+"readOnlyRoot", agent.ReadOnlyRoot, global.ReadOnlyRoot, base.ReadOnlyRoot),
		Tmpfs:           pickList(m, at+"tmpfs", agent.Tmpfs, global.Tmpfs, base.Tmpfs),
		Network:         pick(m, at+"network", agent.Network, global.Network, base.Network),
		User:            pick(m, at+"user", agent.User, global.User, ""),
		CapDrop:         pickList(m, at+"capDrop", agent.CapDrop, global.CapDrop, base.CapDrop),
		Env:             joinMaps(m, at+"env", agent.Env, global.Env, base.Env),
		SetupCommand:    pick(m, at+"setupCommand", agent.SetupCommand, global.SetupCommand, nil).Text(),
		PidsLimit:       pick(m, at+"pidsLimit", agent.PidsLimit, global.PidsLimit, 0),
		Memory:          pick(m, at+"memory", agent.Memory, global.Memory, Size{}),
		MemorySwap:      pick(m, at+"memorySwap", agent.MemorySwap, global.MemorySwap, Size{}),
		CPUs:            pick(m, at+"cpus", agent.CPUs, global.CPUs, 0),
		BlkioWeight:     pick(m, at+"blkioWeight", agent.BlkioWeight, global.BlkioWeight, 0),
		DeviceReadBps:   pick(m, at+"deviceReadBps", agent.DeviceReadBps, global.DeviceReadBps, Size{}),
		DeviceWriteBps:  pick(m, at+"deviceWriteBps", agent.DeviceWriteBps, global.DeviceWriteBps, Size{}),
		DeviceReadIOps:  pick(m, at+"deviceReadIOps", agent.DeviceReadIOps, global.DeviceReadIOps, 0),
		DeviceWriteIOps: pick(m, at+"deviceWriteIOps", agent.DeviceWriteIOps, global.DeviceWriteIOps, 0),
		StorageOpt:      joinMaps(m, at+"storageOpt", agent.StorageOpt, global.StorageOpt, nil),
		WorkspaceLimit:  joinMaps(m, at+"workspaceLimit", agent.WorkspaceLimit, global.WorkspaceLimit, nil),
		GPUs:            strings.TrimSpace(pick(m, at+"gpus", agent.GPUs, global.GPUs, "")),
		Ulimits:         joinMaps(m, at+"ulimits", agent.Ulimits, global.Ulimits, nil),
		SeccompProfile:  pick(m, at+"seccompProfile", agent.SeccompProfile, global.SeccompProfile, ""),
		AppArmorProfile: pick(m, at+"apparmorProfile", agent.AppArmorProfile, global.AppArmorProfile, ""),
		DNS:             pickList(m, at+"dns", agent.DNS, global.DNS, nil),
		ExtraHosts:      pickList(m, at+"extraHosts", agent.ExtraHosts, global.ExtraHosts, nil),
		Binds:           nonEmpty(concat(m, at+"binds", agent.Binds, global.Binds)),

		AllowReservedTargets: pick(m, at+"dangerouslyAllowReservedContainerTargets", agent.AllowReservedTargets, global.AllowReservedTargets, false),
		AllowExternalSources: pick(m, at+"dangerouslyAllowExternalBindSources", agent.AllowExternalSources, global.AllowExternalSources, false),
		AllowNamespaceJoin:   pick(m, at+joinFlag, agent.AllowNamespaceJoin, global.AllowNamespaceJoin, false),
	}
	if d.User == "" {
		m.note(at+"user", fromDerived, nil) // from the owner of the workspace, when there is one
	}
	return d
}

// nonEmpty turns an empty list into an unset one.
func nonEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// prune merges sandbox.prune.*.
func (m *merge) prune(agent, global *pruneFile, base Prune) Prune {
	const at = "sandbox.prune."
	return Prune{
		IdleHours:  pick(m, at+"idleHours", agent.IdleHours, global.IdleHours, base.IdleHours),
		MaxAgeDays: pick(m, at+"maxAgeDays", agent.MaxAgeDays, global.MaxAgeDays, base.MaxAgeDays),
	}
}
