package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// planOf plans the sandbox of one agent of a file.
func (d *fixture) planOf(text, agent, account string) *plan.Plan {
	d.t.Helper()
	r := d.request(text)
	r.AgentID, r.Account = agent, account
	p, err := plan.Make(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// Agents of scope "shared" have one sandbox, made from the same settings and
// directories whoever asks for it.
func TestSharedSandboxIsTheSameForAllAgents(t *testing.T) {
	for _, access := range []string{"none", "ro", "rw"} {
		d := newDesk(t)
		for _, dir := range []string{"a", "b"} {
			d.mkdir(dir)
		}
		text := `{agents: {defaults: {sandbox: {scope: "shared", workspaceAccess: "` + access + `"}},
			list: [{id: "a", workspace: "%s/a"}, {id: "b", workspace: "%s/b", sandbox: {docker: {image: "other"}}}, {id: "c", default: true}]}}`
		for _, account := range []string{"", "acme"} {
			want := d.planOf(text, "c", account)
			for _, agent := range []string{"a", "b"} {
				got := d.planOf(text, agent, account)
				if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
					t.Errorf("%s, account %q, agent %s (-c +%s):\n%s", access, account, agent, agent, diff)
				}
				if got.Agent.ID != agent || want.Spec.AgentID != "c" {
					t.Errorf("agent %s of sandbox %s", got.Agent.ID, want.Spec.AgentID)
				}
			}
		}
		want := d.path(".atoll/workspace")
		if p := d.planOf(text, "a", ""); p.Layout.AgentDir != want || p.ScopeKey != "shared" || p.Agent.Workspace != d.path("a") {
			t.Errorf("%s: %s in %s, agent's own %s", access, p.ScopeKey, p.Layout.AgentDir, p.Agent.Workspace)
		}
	}
}

// Agents that cannot use one sandbox share with those that are like them, and an
// agent that does not share keeps its workspace to itself.
func TestSharedSandboxOfUnlikeAgents(t *testing.T) {
	d := newDesk(t)
	text := `{agents: {defaults: {sandbox: {scope: "shared", workspaceAccess: "rw"}}, list: [
		{id: "own", default: true, sandbox: {scope: "agent"}}, {id: "a"}, {id: "b"},
		{id: "c", sandbox: {workspaceAccess: "ro"}}, {id: "d", sandbox: {workspaceAccess: "ro"}}]}}`
	a, b, c, e := d.planOf(text, "a", ""), d.planOf(text, "b", ""), d.planOf(text, "c", ""), d.planOf(text, "d", "")
	if a.Layout.AgentDir != d.path(".atoll/workspace-a") || a.ScopeKey != "shared" || b.Spec.ConfigHash != a.Spec.ConfigHash {
		t.Errorf("a: %s in %s; b: %s in %s", a.ScopeKey, a.Layout.AgentDir, b.ScopeKey, b.Layout.AgentDir)
	}
	if c.ScopeKey != "shared:c" || e.ScopeKey != "shared:c" || c.Spec.ConfigHash != e.Spec.ConfigHash || c.Spec.Name == a.Spec.Name {
		t.Errorf("c: %s, d: %s", c.ScopeKey, e.ScopeKey)
	}
}

// A workspace given for one use is the one that is used.
func TestSharedSandboxWithAWorkspaceOfTheCaller(t *testing.T) {
	d := newDesk(t)
	r := d.request(`{agents: {defaults: {sandbox: {scope: "shared", workspaceAccess: "rw"}}, list: [{id: "a"}, {id: "b"}]}}`)
	r.AgentID, r.Adjust = "b", func(agent *config.Agent) { agent.Workspace = d.mkdir("mine") }
	p, err := plan.Make(r)
	if err != nil || p.Layout.AgentDir != d.path("mine") {
		t.Errorf("%v, %v", p.Layout, err)
	}
}

// A shared sandbox has the skills of all its agents.
func TestSharedSkills(t *testing.T) {
	d := newDesk(t)
	text := `{agents: {defaults: {sandbox: {scope: "shared"}}, list: [{id: "a", skills: ["x"]}, {id: "b", skills: ["y"]}]}}`
	for _, agent := range []string{"a", "b"} {
		p := d.planOf(text, agent, "")
		if !slices.Equal(p.Skills(), []string{"x", "y"}) || !slices.Equal(p.SharedSkillRoots(), []string{d.path(".atoll/workspace-b/skills")}) {
			t.Errorf("%s: %v, %v", agent, p.Skills(), p.SharedSkillRoots())
		}
	}
}
