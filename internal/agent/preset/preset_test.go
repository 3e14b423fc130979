package preset_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/errhint"
)

func builtin(t *testing.T, id string) *preset.Preset {
	t.Helper()
	p, err := preset.Find(preset.Builtin(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBuiltinPresetsAreWhole(t *testing.T) {
	for _, id := range []string{"claude", "codex", "gemini", "opencode", "shell"} {
		p := builtin(t, id)
		if p.Description == "" || id != "shell" && (p.NPM == nil || p.NPM.Version == "" || p.Args.Task == nil) {
			t.Errorf("%s: %+v", id, p)
		}
		for _, f := range p.Files {
			text := f.Content(preset.Values{Model: `m"x`, Home: "/home/agent", Workspace: "/workspace", BaseURL: "http://localhost:8080"})
			if len(f.JSON) > 0 && !json.Valid(text) {
				t.Errorf("%s: %s is no JSON:\n%s", id, f.Path, text)
			}
			if strings.ContainsAny(string(text), "{}") && len(f.JSON) == 0 {
				t.Errorf("%s: %s is not filled in:\n%s", id, f.Path, text)
			}
		}
	}
	if p := builtin(t, "claude-code"); p.ID != "claude" {
		t.Errorf("an alias leads to %s", p.ID)
	}
}

func TestArguments(t *testing.T) {
	p, shell, gemini := builtin(t, "codex"), builtin(t, "shell"), builtin(t, "gemini")
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"interactive":  {p.Argv(preset.Values{}, false, nil), "codex --dangerously-bypass-approvals-and-sandbox"},
		"a task":       {p.Argv(preset.Values{Task: "-x {model}", Model: "m"}, true, []string{"--last", "{task}"}), "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --model m --last {task} -- -x {model}"},
		"one word":     {gemini.Argv(preset.Values{Task: "mcp"}, true, nil), "gemini --yolo --output-format stream-json --prompt=mcp"},
		"a first task": {gemini.Argv(preset.Values{Task: "-x", Model: "m"}, false, nil), "gemini --yolo --model m --prompt-interactive=-x"},
		"a command":    {shell.Argv(preset.Values{}, false, []string{"make", "test"}), "make test"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestModelVariablesNeedAModel(t *testing.T) {
	p := builtin(t, "claude")
	if _, ok := p.Environment(preset.Values{})["ANTHROPIC_SMALL_FAST_MODEL"]; ok {
		t.Error("a model is named")
	}
	env := p.Environment(preset.Values{Model: "m", Home: "/h"})
	if env["ANTHROPIC_SMALL_FAST_MODEL"] != "m" || env["CLAUDE_CONFIG_DIR"] != "/h/.claude-state" || env["ANTHROPIC_API_KEY"] != preset.NoKey {
		t.Errorf("%v", env)
	}
}

func TestPresetsOfAnInstallation(t *testing.T) {
	state := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(state, preset.Dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, preset.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := preset.All(state); err != nil || len(list) != len(preset.Builtin()) {
		t.Fatalf("%d, %v", len(list), err)
	}
	write("aider.json5", `{id: "aider", title: "Aider", program: "aider", args: {interactive: []}}`)
	write("shell.json5", `{id: "shell", title: "fish", program: "fish", args: {interactive: []}}`)
	list, err := preset.All(state)
	if err != nil || len(list) != len(preset.Builtin())+1 || !slices.IsSortedFunc(list, func(a, b *preset.Preset) int { return strings.Compare(a.ID, b.ID) }) {
		t.Fatalf("%d, %v", len(list), err)
	}
	if p, err := preset.Find(list, "shell"); err != nil || p.Program != "fish" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := preset.Find(list, "claud"); err == nil || !strings.Contains(errhint.Of(err), "aider, claude, codex") {
		t.Errorf("unknown: %v (%s)", err, errhint.Of(err))
	}
	write("other.json5", `{id: "x", title: "X", program: "x", args: {}}`)
	if _, err := preset.All(state); err == nil || !strings.Contains(err.Error(), "other.json5") {
		t.Errorf("an id that is not the file's: %v", err)
	}
}

func TestBadPresetsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{id: "x", title: "X", program: "x", colour: 1}`:                                    "colour",
		`{id: "X y", title: "X", program: "x"}`:                                             "id",
		`{id: "x", title: "X", program: "../x"}`:                                            "program",
		`{id: "x", program: "x"}`:                                                           "title",
		`{id: "x", title: "X", program: "x", files: [{path: "../.ssh/config", text: "a"}]}`: "plain path",
		`{id: "x", title: "X", program: "x", files: [{path: "a", text: "a", json: {}}]}`:    "both",
		`{id: "x", title: "X", program: "x", own: [{from: "/etc/shadow", to: "a"}]}`:        "plain paths",
		`{id: "x", title: "X", program: "x", npm: {package: "a b"}}`:                        "npm.package",
		`{id: "x", title: "X", program: "x", npm: {package: "a", version: "1 && rm"}}`:      "npm.version",
		`{id: "x", title: "X", program: "x", login: [{secret: "../KEY", provider: "p"}]}`:   "variable",
		`{id: "x", title: "X", program: "x", args: {task: ["-p"]}}`:                         "output.read",
		`{id: "x", title: "X", program: "x", args: {task: ["-p"]}, output: {read: "json"}}`: "output.answer",
		`{id: "x", title: "X", program: "x", mcp: {file: "a", format: "yaml"}}`:             "mcp",
		`{id: "x", title: "X", program: "x", foreignLogin: {file: "../x", text: "a"}}`:      "foreignLogin",
		"{id: 'x', title: '" + strings.Repeat("x", 101) + "', program: 'x'}":                "title",
	} {
		if _, err := preset.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{id: "x", title: "X", program: "x", files: [{path: "a", json: {a: "{model}"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := preset.Parse(text)
		if err != nil {
			return
		}
		for _, file := range p.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains(file.Path, "../") {
				t.Errorf("%q was taken", file.Path)
			}
			if content := file.Content(preset.Values{Model: "a\"b\n"}); len(file.JSON) > 0 && !json.Valid(content) {
				t.Errorf("%s is no JSON", content)
			}
		}
	})
}
