package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/environment"
	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Resolve returns the settings of one agent after the merge; "" is the default
// agent. An id that is not configured is an error.
func (c *Config) Resolve(id string) (*Agent, error) {
	m, id, err := c.mergeFor(id)
	if err != nil {
		return nil, err
	}
	sandbox, err := m.sandbox()
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", id, err)
	}
	sandbox.Docker.Image = imageNamed(sandbox.Docker.Image)
	if sandbox.Egress.ModelHosts, err = c.modelHosts(); err != nil {
		return nil, fmt.Errorf("agent %s: %w", id, err)
	}
	workspace, err := m.workspace(id)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", id, err)
	}
	tools, agentTools := orEmpty(c.file.Tools), orEmpty(m.agent.Tools)
	agent := &Agent{
		ID:            id,
		Default:       id == c.DefaultAgent(),
		Workspace:     workspace,
		SkipBootstrap: pick(m, "skipBootstrap", nil, m.global.SkipBootstrap, false),
		HostTools:     m.hostTools(agentTools.Host, tools.Host),
		Sandbox:       sandbox,
		Tools:         m.sandboxTools(agentTools.Sandbox, tools.Sandbox),
		AllTools: ToolLists{
			Agent:  ToolList{agentTools.Allow, agentTools.AlsoAllow, agentTools.Deny},
			Global: ToolList{tools.Allow, tools.AlsoAllow, tools.Deny},
		},
		Skills:  pickList(m, "skills", m.agent.Skills, m.global.Skills, nil),
		Model:   pick(m, "model", m.agent.Model, m.global.Model, ModelChoice{}),
		LLM:     m.llm(),
		Origins: m.origins,
	}
	c.limits.agent(agent)
	return agent, nil
}

// mergeFor starts the merge of one agent.
func (c *Config) mergeFor(id string) (*merge, string, error) {
	if id == "" {
		id = c.DefaultAgent()
	}
	id = NormalizeAgentID(id)
	global := orEmpty(orEmpty(c.file.Agents).Defaults)
	m := &merge{cfg: c, agent: &agentFile{}, global: global, origins: map[string]Origin{}}
	if i := slices.IndexFunc(c.agents, func(a agentEntry) bool { return a.id == id }); i >= 0 {
		m.agent, m.agentAt = &c.agents[i].agentFile, c.agents[i].at
		return m, id, nil
	}
	if len(c.agents) == 0 && id == MainAgent || id == DirectoryAgent || id == APIAgent {
		return m, id, nil
	}
	return nil, id, errhint.With(fmt.Errorf("agent %s is not configured", wording.Quote(id)),
		"known agents: "+strings.Join(c.Agents(), ", "))
}

// workspace is the agent's own directory, else the common one, else one in the
// state directory of the program that the file belongs to.
func (m *merge) workspace(id string) (string, error) {
	const key = "workspace"
	if dir := pick(m, key, m.agent.Workspace, m.global.Workspace, ""); dir != "" {
		return m.cfg.hostPath(dir)
	}
	m.note(key, fromDerived, nil)
	state, err := m.cfg.StateDir()
	if err != nil {
		return "", err
	}
	if id == m.cfg.DefaultAgent() {
		return filepath.Join(state, "workspace"), nil
	}
	return filepath.Join(state, "workspace-"+id), nil
}

// hostTools merges tools.host, whose global level is not below agents.defaults.
func (m *merge) hostTools(agent, global *bool) bool {
	const key = "tools.host"
	if agent == nil && global != nil {
		m.note(key, fromGlobal, (*path)(nil).under(key))
		return *global
	}
	return pick(m, key, agent, nil, false)
}

// sandboxTools keeps both levels of tools.sandbox.tools: what they mean
// together is policy. The origin names the level that each list comes from.
func (m *merge) sandboxTools(agent, global *sandboxToolsFile) ToolLists {
	a, g := orEmpty(orEmpty(agent).Tools), orEmpty(orEmpty(global).Tools)
	note := func(name string, agent, global []string) {
		key := "tools.sandbox.tools." + name
		switch {
		case agent != nil:
			m.written(key, fromAgent, key)
		case global != nil:
			m.note(key, fromGlobal, (*path)(nil).under(key))
		default:
			m.note(key, fromDefault, nil)
		}
	}
	note("allow", a.Allow, g.Allow)
	note("alsoAllow", a.AlsoAllow, g.AlsoAllow)
	note("deny", a.Deny, g.Deny)
	return ToolLists{Agent: ToolList(*a), Global: ToolList(*g)}
}

// StateDir is where agent workspaces are that the file gives no place to: in
// the state directory of the program that the file belongs to.
func (c *Config) StateDir() (string, error) {
	paths, err := c.env.Paths()
	if err != nil {
		return "", err
	}
	if c.isOpenClaw() {
		return paths.OpenClawState, nil
	}
	return paths.AtollState, nil
}

// isOpenClaw reports whether the file is OpenClaw's own, by its name or because
// OPENCLAW_CONFIG_PATH names it.
func (c *Config) isOpenClaw() bool {
	if c.path == "" {
		return false
	}
	if filepath.Base(c.path) == environment.OpenClawFileName {
		return true
	}
	theirs, err := c.env.Absolute(c.env.Get(environment.VarOpenClawConfig), c.env.Cwd)
	return err == nil && c.env.Get(environment.VarOpenClawConfig) != "" && theirs == c.path
}

// hostPath makes a path of the file absolute: relative ones start at the
// directory of the file.
func (c *Config) hostPath(name string) (string, error) {
	base, err := c.env.Absolute(filepath.Dir(c.path), c.env.Cwd)
	if err != nil {
		base = ""
	}
	return c.env.Absolute(name, base)
}

// stateFile is a place in Atoll's own state directory.
func (c *Config) stateFile(name string) (string, error) {
	paths, err := c.env.Paths()
	if err != nil {
		return "", err
	}
	return filepath.Join(paths.AtollState, name), nil
}

// warnShared names the settings of agents that a shared sandbox ignores.
func (c *Config) warnShared(r *report) {
	for _, a := range c.agents {
		m, _, err := c.mergeFor(a.id)
		if err != nil || a.Sandbox == nil {
			continue
		}
		if m.scope(a.Sandbox, orEmpty(m.global.Sandbox), ScopeAgent) != ScopeShared {
			continue
		}
		for _, key := range []string{"docker", "browser", "prune", "egress", "dangerouslyAllowSecretEnv"} {
			at := a.at.child("sandbox").child(key)
			if _, offset, ok := at.find(c.root); ok {
				r.warn(finding{at, offset, "ignored: the scope is shared, so it is read from agents.defaults only", ""})
			}
		}
	}
}
