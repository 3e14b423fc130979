package mcpservers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	text := `{"mcpServers": {"b": {"type": "http", "url": "https://b.example/mcp", "headers": {"Authorization": "x"}}, "c": {"httpUrl": "https://c.example/mcp"}, "odd": 7}, "other": 1,
		"projects": {"/p": {"mcpServers": {"a": {"command": "files", "args": ["--root", "."]}}}, "/q": {"mcpServers": {"c": {}}}}}`
	want := []Server{{Name: "a", Command: "files", Args: []string{"--root", "."}}, {Name: "b", URL: "https://b.example/mcp", Confidential: true}, {Name: "c", URL: "https://c.example/mcp"}, {Name: "odd"}}
	if diff := cmp.Diff(want, ReadJSON([]byte(text), "/p")); diff != "" {
		t.Error(diff)
	}
	tables := `
model = "x"
[mcp_servers.one]
command = 'files'
args = [
  "--root", # a comment
  ".",
]
[mcp_servers."two".env]
KEY = "secret"
[mcp_servers.off]
command = "x"
enabled = false
[mcp_servers.three]
url = "https://three.example"
bearer_token_env_var = "TOKEN"
`
	want = []Server{{Name: "one", Command: "files", Args: []string{"--root", "."}}, {Name: "three", URL: "https://three.example", Confidential: true}, {Name: "two", Confidential: true}}
	if diff := cmp.Diff(want, ReadTOML([]byte(tables))); diff != "" {
		t.Error(diff)
	}
	for _, damaged := range []string{"", "{", "[mcp_servers", "\x00", `{"mcpServers": 1}`, `{"mcpServers": {"a": {"args": 1}}}`} {
		_, _ = ReadJSON([]byte(damaged), "/p"), ReadTOML([]byte(damaged))
	}
}

func TestWrite(t *testing.T) {
	servers := []Server{{Name: `a"b`, Command: "files", Args: []string{"x\ny", `"]`}}, {Name: "c", URL: "https://c.example"}}
	text, err := TOML(servers)
	if diff := cmp.Diff(servers, ReadTOML(text)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	text, err = JSON(servers)
	if diff := cmp.Diff(servers, ReadJSON(text, "")); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestMissing(t *testing.T) {
	in := &Sandbox{
		Has:      func(program string) bool { return program == "files" },
		Reaches:  func(host string, port int) bool { return host == "open.example" && port == 443 },
		Services: []int{3000},
	}
	for want, servers := range map[string][]Server{
		"": {{Command: "files", Args: []string{"--root", "."}}, {URL: "https://open.example/mcp"}, {URL: "http://localhost:3000/mcp"}, {URL: "http://127.0.0.1:3000"}},
		"stay outside": {
			{Command: "files", Confidential: true}, {Command: "files", Args: []string{"--api-key", "x"}}, {Command: "files", Args: []string{"--token=x"}},
			{Command: "files", Args: []string{"Authorization: Bearer x"}}, {Command: "files", Args: []string{"postgres://u:p@db"}}, {Command: "files", Args: []string{"${KEY}"}},
			{Command: "files", Args: []string{strings.Repeat("a1", 20)}},
		},
		"fetches it from the network":   {{Command: "npx"}, {Command: "/usr/bin/uvx"}},
		`there is no program "absent"`:  {{Command: "absent"}},
		`there is no program "-c"`:      {{Command: "-c"}},
		"neither a program":             {{}},
		"--egress shut.example lets":    {{URL: "https://shut.example/mcp"}, {URL: "http://shut.example/mcp"}},
		"--egress shut.example:99 lets": {{URL: "https://shut.example:99"}},
		"--service 4000 shows it":       {{URL: "http://localhost:4000"}, {URL: "http://[::1]:4000"}},
		"not a plain one":               {{URL: "file:///etc"}, {URL: "https://u:p@open.example"}, {URL: "https://open.example?key=1"}, {URL: "::"}},
	} {
		for _, s := range servers {
			if got := s.Missing(in); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%+v: %q, want %q", s, got, want)
			}
		}
	}
}

func TestMax(t *testing.T) {
	var text strings.Builder
	for i := range Max + 5 {
		text.WriteString("[mcp_servers.s" + strings.Repeat("x", i) + "]\ncommand = 'a'\n")
	}
	if got := ReadTOML([]byte(text.String())); len(got) != Max || !slices.IsSortedFunc(got, func(a, b Server) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d servers", len(got))
	}
}
