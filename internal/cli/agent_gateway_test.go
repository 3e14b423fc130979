package cli_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// withModel gives the installation a model that plays a script.
func (p *fixture) withModel(script ...fakellm.Turn) {
	p.t.Helper()
	server, err := fakellm.Listen(p.t.Context(), "tcp", "127.0.0.1:0", script)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = server.Close() })
	p.env["FAKE_KEY"] = "key-1234567890"
	sandbox := map[string]any{"mode": "non-main", "backend": "linux"}
	text, err := json.Marshal(map[string]any{
		"llm":    map[string]any{"providers": map[string]any{"fake": map[string]any{"kind": "openai", "url": "http://" + server.Addr().String(), "keys": []any{map[string]any{"env": "FAKE_KEY"}}, "models": []string{"m"}}}, "prices": map[string]any{"m": map[string]any{"input": 1, "output": 2}}},
		"agents": map[string]any{"defaults": map[string]any{"workspace": p.dir, "model": "fake/m", "sandbox": sandbox}},
	}, json.Deterministic(true))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.config(), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// serve starts a whole gateway, and returns a client of it.
func (p *fixture) serve() *client.Client {
	p.t.Helper()
	a, err := app.Open(p.t.Context(), provide.LoadOptions{Getenv: p.getenv, ConfigPath: p.config()})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(p.t.Context())
	g, err := serve.Open(ctx, a.Parts(), serve.Options{Listen: []string{"127.0.0.1:0"}, Grace: time.Minute})
	if err != nil {
		p.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	c, err := client.New(client.Options{Socket: serve.SocketPath(a.Settings)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		c.Close()
		stop()
		if err := <-served; err != nil {
			p.t.Error(err)
		}
		a.Close()
	})
	return c
}

// changing is what is never the same twice: times, ids of runs and conversations, and
// what a model is asked with them in it: its tokens and their price.
var changing = regexp.MustCompile(`[0-9.]+ ?(ms|µs|s)\b|"durationMs": [0-9]+|run-[a-z0-9]{20,}|conversation-[a-z]+|\$[0-9.]+( so far)?|[0-9]+ tokens|"(input|total|microUsd)": [0-9]+`)

func same(text string) string { return changing.ReplaceAllString(text, "…") }

// While a gateway runs, atoll agent is its client, and says what it says alone.
func TestAgentIsAClient(t *testing.T) {
	p := newPlace(t)
	p.withModel(fakellm.Use("exec", `{"command": "echo $((6*7))"}`), fakellm.Say("It is 42.\nReally."))
	c := p.serve()
	box := []string{"--session", "agent:main:box"}
	p.atoll(slices.Concat([]string{"sandbox", "exec"}, box, []string{"--", "true"})...) // what is said once is said here
	for i, args := range [][]string{
		slices.Concat(box, []string{"-m", "how much?"}),
		slices.Concat(box, []string{"-m", "how much?", "--json"}),
		slices.Concat(box, []string{"-m", "how much?", "--json", "--run-id", "mine", "--account", "acme", "--model", "fake/m", "--thinking", "high"}),
		slices.Concat(box, []string{"-m", "x", "--max-turns", "1"}),
		slices.Concat(box, []string{"-m", "x", "--max-tokens", "10", "--json"}),
		slices.Concat(box, []string{"-m", "x", "--budget", "0.0000001", "--json"}),
		{"-m", "x"}, {"-m", "x", "--json"}, // main is not sandboxed, so it gets no tools
		{"-m", "x", "--host-tools"},
		{"-m", "x", "--agent", "nobody", "--json"},
		slices.Concat(box, []string{"-m", "x", "--model", "nobody/m"}), slices.Concat(box, []string{"-m", "x", "--model", "nobody/m", "--json"}),
		slices.Concat(box, []string{"-m", "x", "--branch", "b", "--json"}),
		{"-m", ""}, {"-m", "x", "--timeout", "-1"},
	} {
		word := string(rune('a' + i))
		out, said, code := p.atoll(slices.Concat([]string{"agent"}, args, []string{"--session-id", "conversation-g" + word})...)
		if i := slices.Index(args, "mine"); i >= 0 {
			args[i] = "other"
			out = strings.ReplaceAll(out, `"mine"`, `"other"`)
		}
		ownOut, ownSaid, ownCode := p.atoll(slices.Concat([]string{"agent", "--local"}, args, []string{"--session-id", "conversation-a" + word})...)
		if diff := cmp.Diff([]any{same(ownOut), same(ownSaid), ownCode}, []any{same(out), same(said), code}); diff != "" {
			t.Errorf("%v: (alone, gateway) %s", args, diff)
		}
	}
	list, err := c.History(t.Context(), "agent:main:box", 10)
	if err != nil || len(list.Messages) != 0 { // every conversation had a name of its own
		t.Errorf("%+v, %v", list, err)
	}
	if _, said, code := p.atoll("agent", "--session-key", "agent:main:box", "-m", "how much?"); code != 0 {
		t.Fatal(said)
	}
	if list, err = c.History(t.Context(), "agent:main:box", 10); err != nil || len(list.Messages) < 3 {
		t.Errorf("the gateway knows nothing of it: %+v, %v", list, err)
	}
}

// Ctrl-C ends the agent in the gateway, and its conversation can go on.
func TestAgentIsCancelled(t *testing.T) {
	p := newPlace(t)
	hold := make(chan struct{})
	defer close(hold)
	p.withModel(fakellm.Turn{Text: "a b c d e f", Hold: hold, HoldAfter: 3})
	c := p.serve()
	codes := map[string]int{}
	outs := map[string]string{}
	for _, where := range []string{"gateway", "alone"} {
		args := []string{"agent", "--session-key", "agent:main:box", "--session-id", "conversation-" + where, "-m", "x", "--config", p.config()}
		if where == "alone" {
			args = append(args, "--local")
		}
		ctx, cancel := context.WithCancel(t.Context())
		out := &until{word: "a", then: cancel}
		var said bytes.Buffer
		codes[where] = cli.Main(ctx, args, &console.Terminal{In: strings.NewReader(""), Out: out, Err: &said, Getenv: p.getenv})
		outs[where] = same(regexp.MustCompile(`(?m)^[a-f ]+$|[0-9]+ tokens|\$[0-9.]+`).ReplaceAllString(out.String(), ""))
		cancel()
	}
	if codes["gateway"] != codes["alone"] || codes["alone"] == 0 {
		t.Errorf("%v", codes)
	}
	if diff := cmp.Diff(outs["alone"], outs["gateway"]); diff != "" {
		t.Errorf("(alone, gateway) %s", diff)
	}
	list, err := c.Session(t.Context(), "agent:main:box")
	if err != nil || !list.Aborted {
		t.Errorf("%+v, %v", list, err)
	}
	if got := slices.Sorted(maps.Keys(codes)); len(got) != 2 {
		t.Error(got)
	}
}

// until is an output that does something when a line with only a word has come.
type until struct {
	bytes.Buffer
	word string
	then func()
}

func (u *until) Write(b []byte) (int, error) {
	n, err := u.Buffer.Write(b)
	if strings.HasPrefix(string(b), u.word) && len(strings.TrimSpace(string(b))) < 4 {
		u.then()
	}
	return n, err
}
