package config

import "slices"

// Sharers are the agents that use one sandbox of scope "shared".
type Sharers struct {
	Agents []*Agent // the first one's workspace is the shared one; never empty
	// First reports whether these agents use the sandbox called "shared". Other
	// groups have a sandbox of their own, named after their first agent.
	First bool
}

// Sharers returns the agents that share a sandbox with the agent: those of
// scope "shared" with the same workspaceAccess, workspaceRoot and backend. The
// default agent comes first, the others follow in the order of the file.
func (c *Config) Sharers(agent *Agent) (Sharers, error) {
	var first *Agent
	var same []*Agent
	for _, id := range c.defaultFirst() {
		other := agent
		if id != agent.ID {
			var err error
			if other, err = c.Resolve(id); err != nil {
				return Sharers{}, err
			}
		}
		if other.Sandbox.Scope != ScopeShared {
			continue
		}
		if first == nil {
			first = other
		}
		if agent.Sandbox.shareable(other.Sandbox) {
			same = append(same, other)
		}
	}
	if len(same) == 0 {
		return Sharers{Agents: []*Agent{agent}, First: true}, nil
	}
	return Sharers{Agents: same, First: same[0] == first}, nil
}

// defaultFirst lists the ids of all agents, the default one first.
func (c *Config) defaultFirst() []string {
	ids := slices.DeleteFunc(slices.Clone(c.Agents()), func(id string) bool { return id == c.DefaultAgent() })
	return append([]string{c.DefaultAgent()}, ids...)
}

// shareable reports whether one sandbox can serve agents of both settings. All
// else that a shared sandbox is made from is read from agents.defaults.
func (s Sandbox) shareable(other Sandbox) bool {
	return s.WorkspaceAccess == other.WorkspaceAccess && s.WorkspaceRoot == other.WorkspaceRoot && s.Backend == other.Backend
}
