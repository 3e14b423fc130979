package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/tool"
)

// kept is what Atoll keeps about a session.
type kept struct{}

func (kept) List(_ context.Context, most int) ([]tool.SessionInfo, error) {
	list := []tool.SessionInfo{{ID: "mine", Own: true, Changed: time.Unix(0, 0), Size: 2048, Title: "make\nit work"}, {ID: "other"}}
	return list[:min(most, len(list))], nil
}

func (kept) History(_ context.Context, id string, _ int) ([]tool.SessionMessage, error) {
	if id == "secret" {
		return nil, errors.New("there is no conversation that this session may look at")
	}
	return []tool.SessionMessage{{Role: "user", Text: "one\ntwo"}, {Role: "assistant", Calls: []string{"exec"}}, {Role: "tool", Text: strings.Repeat("x", 100_000)}, {Role: "assistant", Text: "done"}}, nil
}

func (kept) Search(_ context.Context, query string, most int) ([]tool.Recollection, string, error) {
	if query == "x" {
		return nil, "by words only", nil
	}
	return []tool.Recollection{{"MEMORY.md", 3, 5, 0.9, "the server\nis heron"}, {"memory/a.md", 1, 1, 0.1, "weak"}}[:min(most, 2)], "", nil
}

func (kept) Get(_ context.Context, path string, from, lines int) (string, error) {
	if path != "MEMORY.md" {
		return "", errors.New("no such memory")
	}
	return strings.Repeat("line\n", lines) + strings.Repeat("+", from), nil
}

// What Atoll keeps is shown without a machine, and with every line of it marked
// as somebody's words.
func TestToolsOnWhatIsKept(t *testing.T) {
	set := tool.New(tool.Options{Caller: everybody(), Isolated: &tool.Location{Name: "sbx"}, Sessions: kept{}, Recall: kept{}})
	k := &kit{t: t, set: set}
	for name, c := range map[string]struct{ tool, args, want, not string }{
		"list":           {"sessions_list", `{}`, "mine  (1970-01-01T00:00:00Z, 2048 bytes, this conversation)  make it work\n", "secret"},
		"short list":     {"sessions_list", `{"limit": 1}`, "mine", "other"},
		"history":        {"sessions_history", `{}`, "user:\n  | one\n  | two\nassistant:\n  (called exec)\n", "tool:"},
		"with tools":     {"sessions_history", `{"includeTools": true}`, "tool:\n  | xx", strings.Repeat("x", 5000)},
		"last":           {"sessions_history", `{"limit": 1}`, "  | done", "two"},
		"of another":     {"sessions_history", `{"sessionId": "secret"}`, "no conversation", "one"},
		"search":         {"memory_search", `{"query": "staging"}`, "MEMORY.md:3-5  (score 0.90)\n  | the server\n  | is heron", "none"},
		"strong only":    {"memory_search", `{"query": "staging", "minScore": 0.5}`, "heron", "weak"},
		"one":            {"memory_search", `{"query": "staging", "maxResults": 1}`, "heron", "weak"},
		"nothing":        {"memory_search", `{"query": "x"}`, "(by words only)\nnothing was found", "heron"},
		"get":            {"memory_get", `{"path": "MEMORY.md", "from": 3, "lines": 2}`, "line\nline\n+++", "line\nline\nline"},
		"get of another": {"memory_get", `{"path": "/etc/passwd"}`, "no such memory", "root"},
	} {
		r := k.call(c.tool, c.args)
		if !strings.Contains(r.Text, c.want) || strings.Contains(r.Text, c.not) || r.Where != tool.WhereAtoll || r.Sandbox != "" {
			t.Errorf("%s: %s: %.300q, want %q and not %q", name, r.Where, r.Text, c.want, c.not)
		}
	}
	for _, c := range [][2]string{
		{"sessions_list", `{"limit": 201}`}, {"sessions_history", `{"limit": -1}`}, {"memory_search", `{"query": " "}`},
		{"memory_search", `{"query": "x", "minScore": 2}`}, {"memory_search", `{"query": "x", "maxResults": 51}`}, {"memory_get", `{"path": "MEMORY.md", "lines": 2001}`}, {"memory_get", `{}`},
	} {
		if _, err := set.Call(t.Context(), c[0], []byte(c[1])); err == nil {
			t.Errorf("%s %s was taken", c[0], c[1])
		}
	}
}

func TestNothingIsKept(t *testing.T) {
	k := &kit{t: t, set: tool.New(tool.Options{Caller: everybody(), Isolated: &tool.Location{}})}
	for name, args := range map[string]string{"sessions_list": `{}`, "sessions_history": `{}`, "memory_search": `{"query": "x"}`, "memory_get": `{"path": "MEMORY.md"}`} {
		if r := k.call(name, args); !r.IsError || r.Text == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
