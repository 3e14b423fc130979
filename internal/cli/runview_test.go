package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/runview"
	"github.com/atoll-run/atoll/internal/run"
)

func TestRunView(t *testing.T) {
	var out bytes.Buffer
	v := runview.View{Env: console.NewEnv(&console.Terminal{Out: &out, Getenv: func(string) string { return "" }})}
	call := &chat.Call{ID: "1", Name: "bash", Args: `{"command":"ls"}`}
	for _, e := range []run.Event{
		{Type: "step", Step: run.Executing},
		{Type: "text_delta", Text: "I lo"}, {Type: "text_delta", Text: "ok.\nThen \x1b[31m"},
		{Type: "tool_call", Call: call},
		{Type: "tool_result", Call: call, Text: "a\nb", TookMs: 1.25},
		{Type: "usage_report", Usage: &chat.Usage{Input: 7, Output: 3}, MicroUSD: 5},
		{Type: "usage_report", Bill: &run.Bill{MicroUSD: 5}},
		{Type: "tool_result", Call: call, Text: "no such file\x1b]0;x\a", IsError: true},
		{Type: "tool_result", Call: &chat.Call{}, IsError: true},
		{Type: "log", Text: strings.Repeat("x", 300)},
		{Type: "waiting", Text: "for the branch"}, {Type: "done"},
	} {
		v.Event(&e)
	}
	want := "I look.\nThen \\u001b[31m\n→ bash {\"command\":\"ls\"}\n← a …  1.2 ms\n✗ bash failed: no such file\\u001b]0;x\\u0007  0.0 ms · 10 tokens so far\n" +
		"✗ a tool failed:   0.0 ms · 10 tokens so far\n  " + strings.Repeat("x", 200) + "…\nfor the branch\n"
	got := out.String()
	if strings.ContainsAny(got, "\x1b\a") {
		t.Errorf("not printable: %q", got)
	}
	if got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if !v.Spoken() || v.Tokens() != 10 {
		t.Errorf("spoken %v, %d tokens", v.Spoken(), v.Tokens())
	}
}
