package policy_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

func TestAToolMustPassEveryStage(t *testing.T) {
	for name, c := range map[string]struct {
		all     config.ToolLists
		allowed bool
		source  string
	}{
		"no lists":              {config.ToolLists{}, true, "tools.sandbox.tools.allow"},
		"denied for all agents": {config.ToolLists{Global: config.ToolList{Deny: []string{"group:runtime"}}}, false, "tools.deny"},
		"denied for this agent": {config.ToolLists{Agent: config.ToolList{Deny: []string{"ex*"}}}, false, "agents.list[0].tools.deny"},
		"not in the file's list": {config.ToolLists{Global: config.ToolList{Allow: []string{"read"}},
			Agent: config.ToolList{Allow: []string{"exec"}}}, false, "tools.allow"},
		"not in the agent's list": {config.ToolLists{Agent: config.ToolList{Allow: []string{"read"}}}, false, "agents.list[0].tools.allow"},
		"in both lists": {config.ToolLists{Global: config.ToolList{Allow: []string{"exec", "read"}},
			Agent: config.ToolList{Allow: []string{"bash"}}}, true, "tools.sandbox.tools.allow"},
		"an empty list allows all": {config.ToolLists{Global: config.ToolList{Allow: []string{}}}, true, "tools.sandbox.tools.allow"},
	} {
		t.Run(name, func(t *testing.T) {
			d := policy.ResolveTools(config.ToolLists{}, "agents.list[0]").Within(c.all, "agents.list[0]").Decide("exec")
			if d.Allowed != c.allowed || d.Source != c.source {
				t.Errorf("allowed %v by %q, want %v by %q", d.Allowed, d.Source, c.allowed, c.source)
			}
			if !d.Allowed && len(d.Fix) == 0 {
				t.Error("no fix")
			}
		})
	}
}

// A denial of the sandbox's own lists stays one, whatever the others say.
func TestTheSandboxListsComeFirst(t *testing.T) {
	lists := config.ToolLists{Global: config.ToolList{Deny: []string{"exec"}}}
	d := policy.ResolveTools(lists, "").Within(config.ToolLists{Global: config.ToolList{Allow: []string{"exec"}}}, "").Decide("exec")
	if d.Allowed || d.Source != "tools.sandbox.tools.deny" {
		t.Errorf("got %+v", d)
	}
}
