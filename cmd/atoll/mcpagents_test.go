//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// clientCommand is what the scripted model has the server's tool run.
const clientCommand = `{"command":"echo made in $(pwd) >client.txt && cat client.txt"}`

// Claude Code and Codex, which run on the host, work in a sandbox through the server that
// install wrote into their configuration.
func TestRealAgentsOverMCP(t *testing.T) {
	path := installedAgents(t)
	p := newAgentPlace(t, 10)
	home := filepath.Join(p.dir, "home") // clients pass on little more of the environment than this
	claude := p.serve(fakellm.Use("mcp__atoll__sandbox_exec", clientCommand))
	codex := p.serve(fakellm.Turn{Calls: []fakellm.Call{{Name: "sandbox_exec", Namespace: "mcp__atoll", Arguments: clientCommand}}})
	p.env = append(p.env, "PATH="+path, "ATOLL_STATE_DIR="+filepath.Join(home, ".atoll"), "CODEX_HOME="+filepath.Join(home, ".codex"), "ANTHROPIC_API_KEY="+testKey, "CLAUDE_CODE_OAUTH_TOKEN=",
		"ANTHROPIC_BASE_URL="+strings.TrimSuffix(claude.BaseURL(), "/v1"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	settings := "model_provider = \"scripted\"\nweb_search = \"disabled\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"" + codex.BaseURL() +
		"\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nsupports_websockets = false\n"
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".codex"), 0o700), os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	p.must("", "mcp", "install", "claude", "--user", "--force")
	p.must("", "mcp", "install", "codex", "--user", "--force")
	for _, argv := range [][]string{
		{"claude", "-p", "make a file", "--allowedTools", "mcp__atoll__sandbox_exec"},
		{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--", "make a file"},
	} {
		if out := p.client(argv...); !strings.Contains(out, "it is made") {
			t.Errorf("%s: %s", argv[0], out)
		}
	}
	for name, server := range map[string]*fakellm.Server{"claude": claude, "codex": codex} {
		requests := server.Requests()
		if len(requests) < 2 || !strings.Contains(string(requests[len(requests)-1].Body), "made in /workspace") {
			t.Errorf("%s did not see the result: %d requests", name, len(requests))
		}
	}
	if _, err := os.Stat(filepath.Join(p.repository, "client.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is in the repository: %v", err)
	}
	if out, _ := p.must("", "sync", "status", "--json"); !strings.Contains(out, "client.txt") {
		t.Errorf("nothing waits:\n%s", out)
	}
}

// client runs a program of the host in the repository and returns what it said.
func (p *agentPlace) client(argv ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "env", append([]string{"--"}, argv...)...) // found by the path of its environment
	cmd.Dir, cmd.Env = p.repository, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Errorf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// The inspector of the protocol's authors lists and calls tools.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	need.Time(t, "it runs programs that npm has installed")
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "mcp").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(strings.TrimSpace(string(out)), "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "mcp-inspector")); err != nil {
		need.Missing(t, err)
	}
	p := newAgentPlace(t, 3)
	p.env = append(p.env, "PATH="+bin+":"+os.Getenv("PATH"), "ATOLL_STATE_DIR="+filepath.Join(p.dir, "home", ".atoll"))
	inspect := []string{"mcp-inspector", "--cli", "atoll", "mcp", "--method"}
	if out := p.client(append(inspect, "tools/list")...); strings.Count(out, `"name": "`) < len(mcpTools) {
		t.Errorf("tools: %s", out)
	}
	if out := p.client(append(inspect, "tools/call", "--tool-name", "sandbox_exec", "--tool-arg", "command=echo $((6*7))")...); !strings.Contains(out, `42\n`) {
		t.Errorf("call: %s", out)
	}
}
