package sdktest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// presets are the programs that runs know by name, with what they call a shell.
var presets = map[string]fakellm.Turn{
	"claude-code": fakellm.Use("Bash", `{"command":"echo made by hand >made.txt && cat made.txt","description":"Make a file"}`),
	"opencode":    fakellm.Use("bash", `{"command":"echo made by hand >made.txt && cat made.txt","description":"Make a file"}`),
	"gemini":      fakellm.Use("run_shell_command", `{"command":"echo made by hand >made.txt && cat made.txt","description":"Make a file"}`),
	"codex":       fakellm.Use("exec_command", `{"cmd":"echo made by hand >made.txt && cat made.txt"}`),
}

// The presets of runs are tried with the programs themselves, each whole in a
// sandbox without a network: they call a tool, answer, and are billed by
// LiteLLM's word. Asked for as TestAgents is.
func TestPresetsInRuns(t *testing.T) {
	if os.Getenv("ATOLL_TEST_AGENTS") == "" {
		return
	}
	presetsOn(t, "linux", "unix:///nowhere")
	presetsOn(t, "docker", enginetest.Docker(t))
}

func presetsOn(t *testing.T, backend, engine string) {
	t.Helper()
	for preset, call := range presets {
		t.Run(preset+" on "+backend, func(t *testing.T) {
			upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey, Models: map[string]litellmtest.Model{
				"claude-words": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{call, {Text: "it is made", When: "made by hand"}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer upstream.Close()
			r := presetRun{preset, backend, engine, upstream.URL()}.do(t)
			for _, q := range upstream.Requests() {
				t.Logf("%s: %s", q.Path, strings.Join(q.ToolNames(), " "))
			}
			if r.Error != nil || r.Text != "it is made" || upstream.Err() != nil {
				t.Fatalf("%q, %+v; the model: %v", r.Text, r.Error, upstream.Err())
			}
			truth := int64(0)
			for _, row := range upstream.Rows() {
				truth += int64(row.Spend*1e6 + .5)
			}
			if b := r.Bill; b.Provisional || b.Source != "litellm" || b.MicroUSD != truth || b.Calls != len(upstream.Rows()) || b.Calls < 2 {
				t.Errorf("bill %+v; LiteLLM says %d in %d calls", b, truth, len(upstream.Rows()))
			}
		})
	}
}

// presetRun is a task for a program, in an installation of its own.
type presetRun struct{ preset, backend, engine, url string }

func (p presetRun) do(t *testing.T) *run.Receipt {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // sockets below it need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "HOME": dir, "LITELLM_MASTER_KEY": masterKey, "DOCKER_HOST": p.engine, "CONTAINER_HOST": "unix:///nowhere"}
	a, err := app.Open(t.Context(), provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: p.config(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	runs, err := a.Runs.Open(execute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runs.Close() })
	var seen, said strings.Builder
	r, err := runs.Do(t.Context(), &execute.Task{
		ID: "preset", Variant: "it", Timeout: patience, Messages: []chat.Message{{Role: chat.User, Text: "make the file"}},
	}, func(e run.Event) {
		if e.Type == "text_delta" { // comes in pieces
			said.WriteString(e.Text)
			return
		}
		seen.WriteString(e.Type + ":" + e.Text + " ")
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"tool_call:", "tool_result:made by hand"} { // as it happened
		if !strings.Contains(seen.String(), part) {
			t.Errorf("nothing told of %q: %s", part, seen.String())
		}
	}
	if !strings.Contains(said.String(), "it is made") {
		t.Errorf("the words are %q", said.String())
	}
	t.Logf("%d MB at most, %v", r.PeakMemory>>20, r.Ended.Sub(r.Started).Round(time.Millisecond))
	return r
}

// config has the programs of npm where the preset's image would have them.
func (p presetRun) config(t *testing.T, dir string) string {
	t.Helper()
	text, err := json.Marshal(object{
		"llm": object{"providers": object{"litellm": object{"url": p.url, "keys": []any{object{"env": "LITELLM_MASTER_KEY"}}}}},
		"agents": object{"defaults": object{"workspace": dir, "model": "litellm/claude-words", "sandbox": object{
			"mode": "all", "backend": p.backend, "docker": object{"dangerouslyAllowExternalBindSources": true},
		}}},
		"runs": object{"variants": object{"it": object{
			"preset": p.preset, "binds": []string{installed(t, "agents") + "/node_modules:/node_modules"}, "memory": "2g",
			"env": object{"PATH": "/node_modules/.bin:/usr/bin:/bin"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
