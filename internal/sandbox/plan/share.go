package plan

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// share finds the agents that use the same sandbox, in scope "shared". It is the
// same sandbox for all of them: one name, one workspace and one hash.
func (p *Plan) share(r Request) error {
	if p.Agent.Sandbox.Scope != config.ScopeShared {
		return nil
	}
	with, err := r.Config.Sharers(p.Agent)
	if err != nil {
		return err
	}
	p.Sharers = with.Agents
	if !with.First {
		p.ScopeKey = policy.SharedScopeKey(with.Agents[0].ID, r.Account)
	}
	return nil
}

// owner is the agent that a sandbox is registered for: in scope "shared" the one
// whose workspace is shared, whoever asks.
func (p *Plan) owner() *config.Agent {
	if len(p.Sharers) > 0 {
		return p.Sharers[0]
	}
	return p.Agent
}

// AgentDir is the directory on the host that the agent works in: its own
// workspace, or the shared one if it is sandboxed in scope "shared".
func (p *Plan) AgentDir() string {
	if p.Sandboxed {
		return p.Layout.AgentDir
	}
	return p.Agent.Workspace
}

// Skills are the names of the skills that a sandbox needs: those of every agent
// that uses it. nil means all.
func (p *Plan) Skills() (names []string) {
	if len(p.Sharers) == 0 {
		return p.Agent.Skills
	}
	names = []string{}
	for _, agent := range p.Sharers {
		if agent.Skills == nil {
			return nil
		}
		names = append(names, agent.Skills...)
	}
	return names
}

// SharedSkillRoots are the skill directories in the workspaces of the other
// agents that share the sandbox.
func (p *Plan) SharedSkillRoots() (roots []string) {
	for _, agent := range p.Sharers {
		if agent.Workspace != p.Layout.AgentDir {
			roots = append(roots, filepath.Join(agent.Workspace, "skills"))
		}
	}
	return roots
}
