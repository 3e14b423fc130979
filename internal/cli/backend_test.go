package cli_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// fixture is an installation whose sandboxes the kernel makes, and which runs shell
// scripts as agents.
type fixture struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newPlace(t *testing.T) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // the sockets below it must fit into 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Chdir(dir) // not in the checkout that the tests lie in: runs would work on it
	nowhere := "unix://" + filepath.Join(dir, "none.sock")
	p := &fixture{t, dir, map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "DOCKER_HOST": nowhere, "CONTAINER_HOST": nowhere, "HOME": dir, "OPENAI_API_KEY": "sk-never-sent-anywhere"}}
	text, err := json.Marshal(map[string]any{
		"agents": map[string]any{"defaults": map[string]any{"workspace": filepath.Join(dir, "agent"), "sandbox": map[string]any{"mode": "all", "backend": "linux"}}},
		"runs":   map[string]any{"variants": map[string]any{"script": map[string]any{"argv": []string{"/bin/sh", "-c", "{task}"}, "read": "text"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.config(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.empty)
	return p
}

// empty removes the sandboxes that commands made.
func (p *fixture) empty() {
	var said bytes.Buffer
	args := []string{"sandbox", "recreate", "--all", "--force", "--config", p.config()}
	if code := cli.Main(context.WithoutCancel(p.t.Context()), args, &console.Terminal{In: strings.NewReader(""), Out: &said, Err: &said, Getenv: p.getenv}); code != 0 {
		p.t.Errorf("sandboxes are left: %s", said.String())
	}
}

func (p *fixture) config() string { return filepath.Join(p.dir, "atoll.json5") }

func (p *fixture) getenv(name string) string { return p.env[name] }

// atoll runs one command line.
func (p *fixture) atoll(args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	code = cli.Main(p.t.Context(), append(args, "--config", p.config()), &console.Terminal{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Getenv: p.getenv})
	return stdout.String(), stderr.String(), code
}

// open starts a gateway's interface on the socket, which counts its requests beside
// those that only ask whether it lives.
func (p *fixture) open() (asked func() int) {
	p.t.Helper()
	a, err := app.Open(p.t.Context(), provide.LoadOptions{Getenv: p.getenv, ConfigPath: p.config()})
	if err != nil {
		p.t.Fatal(err)
	}
	runs, err := a.Runs.Open(execute.Options{Program: "/bin/sh"})
	if err != nil {
		p.t.Fatal(err)
	}
	options := serve.RESTOptions(a.Parts(), runs)
	options.Identify = func(*http.Request) (*access.Caller, error) {
		return &access.Caller{Token: "socket", Scope: access.Admin}, nil
	}
	handler := rest.New(options)
	n := make(chan int, 1)
	n <- 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			n <- <-n + 1
		}
		handler.ServeHTTP(w, r)
	})}
	l, err := (&net.ListenConfig{}).Listen(p.t.Context(), "unix", filepath.Join(p.env["ATOLL_STATE_DIR"], serve.Socket))
	if err != nil {
		p.t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	p.t.Cleanup(func() {
		handler.Close()
		_ = server.Shutdown(context.WithoutCancel(p.t.Context()))
		<-served
		_ = runs.Close()
		a.Close()
	})
	return func() int { v := <-n; n <- v; return v }
}

// newRun is the id of a run that was given none.
var newRun = regexp.MustCompile(`run-[a-z0-9]{20,}`)

// While a gateway runs, verbs are its clients, and say what they say alone.
func TestVerbsAreClients(t *testing.T) {
	p := newPlace(t)
	if _, said, code := p.atoll("runs", "start", "--variant", "script", "-m", "echo alone", "--run-id", "r0"); code != 0 {
		t.Fatal(said)
	}
	asked := p.open()
	out, said, code := p.atoll("runs", "start", "--variant", "script", "-m", "echo hello", "--run-id", "r1", "--account", "acme")
	if code != 0 || !strings.Contains(out, "hello") || asked() < 2 {
		t.Fatalf("%d: %s%s, %d requests", code, out, said, asked())
	}
	if _, _, code := p.atoll("runs", "start", "--variant", "script", "-m", "exit 3", "--run-id", "r2"); code != 1 {
		t.Errorf("a run that fails ends with %d", code)
	}
	for _, args := range [][]string{
		{"runs", "list", "--json"}, {"runs", "list", "-n", "1"}, {"runs", "list", "--before", "r1", "--json"}, {"runs", "list", "--account", "acme"}, {"runs", "list", "--before", "nothing"},
		{"runs", "show", "r1", "--json"}, {"runs", "show", "r2"}, {"runs", "show", "nothing"},
		{"runs", "events", "r1", "--json"}, {"runs", "events", "r0", "--after", "3"}, {"runs", "events", "r2", "-f"},
		{"runs", "cost", "--json"}, {"runs", "start", "--variant", "nobody", "-m", "x"}, {"runs", "start", "--variant", "script", "-m", "other", "--run-id", "r1"},
		{"sandbox", "list", "--json"}, {"sandbox", "recreate", "--all", "--force", "--json"}, {"sandbox", "prune"},
	} {
		before := asked()
		out, said, code := p.atoll(args...)
		if asked() == before {
			t.Errorf("%v did not ask the gateway", args)
		}
		before = asked()
		ownOut, ownSaid, ownCode := p.atoll(append(args, "--local")...)
		if asked() != before {
			t.Errorf("%v --local asked the gateway", args)
		}
		if diff := cmp.Diff([]any{newRun.ReplaceAllString(ownOut, "run-…"), ownCode}, []any{newRun.ReplaceAllString(out, "run-…"), code}); diff != "" {
			t.Errorf("%v: (alone, gateway) %s\n%s\n%s", args, diff, ownSaid, said)
		}
	}
}
