package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

func job(task string) *run.Job {
	return &run.Job{
		Request: run.Request{ID: "r1", Model: "m", Messages: []chat.Message{
			{Role: chat.User, Text: "before"}, {Role: chat.Assistant, Text: "yes"}, {Role: chat.User, Text: task},
		}},
		Workspace: "/workspace", Home: "/workspace", Timeout: 600 * time.Second, Inner: 540 * time.Second,
	}
}

func TestOpenClawVariant(t *testing.T) {
	o := run.OpenClawOptions{Models: []openclaw.Model{{ID: "m"}}}
	v := run.OpenClaw(o)
	argv, err := v.Argv(job("-rf is no flag"))
	want := []string{"node", "--liftoff-only", "/app/dist/index.js", "agent", "--local", "--agent", "main", "--session-id", "r1", "--message=-rf is no flag", "--json", "--timeout", "540"}
	if err != nil || !slices.Equal(argv, want) {
		t.Errorf("%q, %v", argv, err)
	}
	files, err := v.Files(job("task"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		texts[f.Path] = string(f.Data)
	}
	if texts[".cogni/prompt.txt"] != "task" || strings.Count(texts[".cogni/history.jsonl"], "\n") != 2 || !strings.Contains(texts[".openclaw/openclaw.json"], `"cogni/m"`) {
		t.Errorf("files %v", texts)
	}
	if e := v.Env(job("task")); e["HOME"] != "/workspace" || e["OPENCLAW_LOAD_SHELL_ENV"] != "0" {
		t.Errorf("env %v", e)
	}
}

// A task that is too long for an argument is refused before anything starts, or
// goes by a file where the release can read one.
func TestOpenClawLongTask(t *testing.T) {
	long := job(strings.Repeat("x", 200<<10))
	var f *run.Failure
	if _, err := run.OpenClaw(run.OpenClawOptions{}).Argv(long); !errors.As(err, &f) || f.Code != "prompt_too_large" {
		t.Errorf("error %v", err)
	}
	argv, err := run.OpenClaw(run.OpenClawOptions{MessageFile: true}).Argv(long)
	if err != nil || !slices.Contains(argv, "/workspace/.cogni/prompt.txt") {
		t.Errorf("%.200q, %v", argv, err)
	}
	other := job("task")
	other.Model = "another"
	if _, err := run.OpenClaw(run.OpenClawOptions{Closed: true}).Files(other); !errors.As(err, &f) || f.Code != "unknown_model" {
		t.Errorf("error %v", err)
	}
}
