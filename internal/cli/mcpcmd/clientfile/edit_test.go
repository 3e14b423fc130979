package clientfile

import (
	"strings"
	"testing"
)

var ours = &Entry{Command: "atoll", Args: []string{"mcp"}}

// An entry is added, is there once, and goes again; the rest stays byte for byte.
func TestEdit(t *testing.T) {
	jsonFile := JSON("mcpServers", true)
	for name, c := range map[string]struct {
		edit         Editor
		before, with string
	}{
		"new":           {jsonFile, "", "{\n  \"mcpServers\": {\n    \"atoll\": {\"type\": \"stdio\", \"command\": \"atoll\", \"args\": [\"mcp\"]}\n  }\n}\n"},
		"others":        {jsonFile, "{\"a\": [1.0, 2e3],\n \"mcpServers\": {\"b\": {}}}", "{\"a\": [1.0, 2e3],\n \"mcpServers\": {\n    \"atoll\": {\"type\": \"stdio\", \"command\": \"atoll\", \"args\": [\"mcp\"]},\"b\": {}}}"},
		"none yet":      {jsonFile, `{"mcpServers":{},"z":"\u00e9"}`, "{\"mcpServers\":{\n    \"atoll\": {\"type\": \"stdio\", \"command\": \"atoll\", \"args\": [\"mcp\"]}\n  },\"z\":\"\\u00e9\"}"},
		"comments":      {JSON("servers", false), "// mine\n{\n  /* all */ \"inputs\": [], // none\n}\n", "// mine\n{\n  \"servers\": {\n    \"atoll\": {\"command\": \"atoll\", \"args\": [\"mcp\"]}\n  },\n  /* all */ \"inputs\": [], // none\n}\n"},
		"no table":      {TOML, "", "[mcp_servers.atoll]\ncommand = 'atoll'\nargs = ['mcp']\n"},
		"tables":        {TOML, "model = \"x\" # mine\n\n[mcp_servers.b]\ncommand = \"b\"\n", "model = \"x\" # mine\n\n[mcp_servers.b]\ncommand = \"b\"\n\n[mcp_servers.atoll]\ncommand = 'atoll'\nargs = ['mcp']\n"},
		"table between": {TOML, "[mcp_servers.atoll]\ncommand = 'old'\n[mcp_servers.atoll.env]\nA = 'b'\n[tui]\nx = 1\n", "[tui]\nx = 1\n\n[mcp_servers.atoll]\ncommand = 'atoll'\nargs = ['mcp']\n"},
	} {
		with, err := c.edit([]byte(c.before), ours)
		if err != nil || string(with) != c.with {
			t.Errorf("%s: %v\n%s", name, err, with)
			continue
		}
		if again, err := c.edit(with, ours); err != nil || string(again) != c.with {
			t.Errorf("%s again: %v\n%s", name, err, again)
		}
		gone, err := c.edit(with, nil)
		if err != nil || strings.Contains(string(gone), "atoll") {
			t.Errorf("%s removed: %v\n%s", name, err, gone)
		}
		if back, err := c.edit(gone, ours); err != nil || strings.Count(string(back), "atoll") != strings.Count(c.with, "atoll") {
			t.Errorf("%s added again: %v\n%s", name, err, back)
		}
	}
}

// An older entry is replaced where it stands, first, last or alone.
func TestEditReplaces(t *testing.T) {
	edit := JSON("mcpServers", false)
	for _, before := range []string{
		`{"mcpServers": {"atoll": {"command": "old"}}}`, `{"mcpServers": {"atoll": {"command": "old"}, "b": {}}}`,
		`{"mcpServers": {"a": {}, "atoll": {"command": "old"}}}`, "{\"mcpServers\": {\"a\": {},\n\"atoll\": {\"command\": \"old\"},\n\"b\": {}}}",
	} {
		after, err := edit([]byte(before), ours)
		if err != nil || strings.Contains(string(after), "old") || strings.Count(string(after), "atoll\":") != 1 {
			t.Errorf("%v: %s", err, after)
		}
		gone, err := edit([]byte(before), nil)
		if err != nil || strings.Contains(string(gone), "atoll") {
			t.Errorf("%v: %s", err, gone)
		}
	}
}

// What cannot be read, or not be changed alone, is refused.
func TestEditRefuses(t *testing.T) {
	edit := JSON("mcpServers", false)
	for _, text := range []string{"{", "[]", "7", `{"mcpServers": []}`, `{"mcpServers": {}, "mcpServers": {}}`, `{"mcpServers": null}`, "{\"a\": \xff}", strings.Repeat("[", 10_000)} {
		if after, err := edit([]byte(text), ours); err == nil {
			t.Errorf("%.40q became %q", text, after)
		}
	}
	for _, text := range []string{"[mcp_servers", "a = \n", "mcp_servers = 7\n", "mcp_servers = { atoll = { command = 'x' } }\n", "mcp_servers.atoll.command = 'x'\n"} {
		if after, err := TOML([]byte(text), ours); err == nil {
			t.Errorf("%q became %q", text, after)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, text := range []string{"", "{}", `{"mcpServers": {"atoll": {}, "b": 1}}`, "// c\n{a: {mcpServers: 1}, mcpServers: {'atoll': 2,},}", "[mcp_servers.atoll]\n[x]\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, edit := range []Editor{JSON("mcpServers", true), TOML} {
			with, err := edit([]byte(text), ours)
			if err != nil {
				continue
			}
			if _, err := edit(with, nil); err != nil {
				t.Errorf("%q: what was added to %q cannot be removed: %v", with, text, err)
			}
		}
	})
}
