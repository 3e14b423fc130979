package policy

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
)

// toolStage is one level of tools.allow and tools.deny, which hold for every
// session, sandboxed or not.
type toolStage struct {
	path        string
	allow, deny []rule
}

// projectTools is how refusals name the list of a project's file.
const projectTools = "the project's atoll.json5: tools"

// Within adds the lists for all sessions to a policy. The file's level and the
// agent's are stages of their own: a tool must pass each.
func (p ToolPolicy) Within(all config.ToolLists, agentPath string) ToolPolicy {
	if agentPath == "" {
		agentPath = anyAgentPath
	}
	p.stages = []toolStage{
		{"tools", rules(all.Global.Allow), rules(all.Global.Deny)},
		{agentPath + ".tools", rules(all.Agent.Allow), rules(all.Agent.Deny)},
		{projectTools, nil, rules(all.Project.Deny)},
	}
	return p
}

// pass returns the refusal of the first stage that a tool does not pass, or the
// decision as it was.
func (p ToolPolicy) pass(name string, allowed Decision) Decision {
	for _, s := range p.stages {
		if by, denied := firstMatch(s.deny, name); denied {
			return Decision{Reason: reasonDeny, Rule: by.written, Source: s.path + ".deny",
				Fix: []string{fmt.Sprintf("Remove %q from %s.deny.", by.written, s.path)}}
		}
		if _, listed := firstMatch(s.allow, name); len(s.allow) > 0 && !listed {
			return Decision{Reason: reasonAllow, Source: s.path + ".allow",
				Fix: []string{fmt.Sprintf("Add %q to %s.allow.", name, s.path)}}
		}
	}
	return allowed
}
