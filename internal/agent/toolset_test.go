package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/tool"
)

func TestToolset(t *testing.T) {
	set := tool.New(tool.Options{Isolated: &tool.Location{}})
	set.Policy = policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: []string{"*"}, Deny: []string{"exec"}}}, "")
	tools := agent.Toolset{Set: set}
	var names []string
	for _, f := range tools.Functions() {
		names = append(names, f.Name)
		if f.Description == "" || !jsontext.Value(f.Schema).IsValid() {
			t.Errorf("%s cannot be described to a model", f.Name)
		}
	}
	if slices.Contains(names, "exec") || slices.Contains(names, "web_fetch") || !slices.Contains(names, "read") {
		t.Errorf("offered: %v", names)
	}
	for name, args := range map[string]string{"exec": `{"command":"ls"}`, "fly": `{}`, "read": `{"path":`, "ls": `[]`} {
		result, err := tools.Call(t.Context(), name, args)
		if err != nil || !result.IsError || strings.TrimSpace(result.Text) == "" {
			t.Errorf("%s %s: %+v, %v", name, args, result, err)
		}
	}
}
