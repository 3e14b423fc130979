package app_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// linuxSite is an installation without an engine, whose sandboxes the kernel
// makes.
func linuxSite(t *testing.T) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // the sockets below it must fit into 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, state: filepath.Join(dir, "state"), agent: filepath.Join(dir, "agent")}
	nowhere := "unix://" + filepath.Join(dir, "none.sock")
	s.env = map[string]string{"ATOLL_STATE_DIR": s.state, "DOCKER_HOST": nowhere, "CONTAINER_HOST": nowhere, "HOME": dir, "MODEL_KEY": modelKey}
	s.mkdir(s.agent)
	s.set("agents.defaults.workspace", s.agent)
	s.set("agents.defaults.sandbox.mode", "all")
	s.set("agents.defaults.sandbox.backend", "linux")
	t.Cleanup(s.removeAll)
	return s
}

// removeAll removes every sandbox of the installation, those in pools too.
func (s *site) removeAll() {
	ctx := context.WithoutCancel(s.t.Context())
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: s.getenv, ConfigPath: s.configFile()})
	if err != nil {
		s.t.Error(err)
		return
	}
	defer a.Close()
	rows, err := a.Manager.Registry.List(ctx, 0)
	if err != nil {
		s.t.Error(err)
	}
	for _, row := range rows {
		if err := a.Manager.Remove(ctx, row.ContainerName, nil); err != nil {
			s.t.Error(err)
		}
	}
	pooled, err := a.Registry.Pooled(ctx)
	if err != nil {
		s.t.Error(err)
	}
	for _, row := range pooled {
		if err := a.RemovePooled(ctx, row); err != nil {
			s.t.Error(err)
		}
	}
}

// modelKey is the key of every provider in these tests: no model of ours, and
// no sandbox, ever sees it.
const modelKey = "sk-test-abcdefghijklmnop"

// provider adds a provider with one model, m, to the configuration.
func (s *site) provider(name, api, baseURL string, model map[string]any) {
	entry := map[string]any{"id": "m-" + name, "name": name, "cost": map[string]any{"input": 1, "output": 5}}
	maps.Copy(entry, model)
	s.set("models.providers."+name, map[string]any{
		"baseUrl": baseURL, "api": api, "apiKey": map[string]any{"source": "env", "provider": "default", "id": "MODEL_KEY"}, "models": []any{entry},
	})
}

// play starts a scripted model and makes it the agent's.
func (s *site) play(api string, turns ...fakellm.Turn) *fakellm.Server {
	s.t.Helper()
	server, err := fakellm.Listen(s.t.Context(), "tcp", "127.0.0.1:0", turns)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = server.Close() })
	s.provider("p", api, server.BaseURL(), nil)
	s.set("agents.defaults.model", "p/m-p")
	return server
}

// upstream makes a handler the agent's model.
func (s *site) upstream(handler http.HandlerFunc) {
	s.t.Helper()
	server := httptest.NewServer(handler)
	s.t.Cleanup(server.Close)
	s.provider("p", "openai-completions", server.URL+"/v1", nil)
	s.set("agents.defaults.model", "p/m-p")
}

// errand is one run of an agent, and what was seen of it.
type errand struct {
	*host.Worker
	app    *app.App
	out    *agent.Outcome
	err    error
	mu     sync.Mutex
	events []agent.Event
}

func (e *errand) note(event agent.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

// results are the texts of what tools answered.
func (e *errand) results() (texts []string) {
	for _, event := range e.events {
		if event.Type == agent.ToolResult {
			texts = append(texts, event.Text)
		}
	}
	return texts
}

// send gives the agent a task and waits until it has ended.
func (s *site) send(ctx context.Context, o host.Options) *errand {
	s.t.Helper()
	e := &errand{app: s.open()}
	watch := o.Watch
	o.Watch = func(event agent.Event) {
		e.note(event)
		if watch != nil {
			watch(event)
		}
	}
	worker, err := e.app.Agents.NewWorker(ctx, o)
	if err != nil {
		s.t.Fatalf("worker: %v", err)
	}
	e.Worker = worker
	e.out, e.err = worker.Agent.Run(ctx, "do it")
	s.t.Cleanup(func() { _ = worker.Close() })
	return e
}

// bill is what the run did cost, as everybody else sees it.
func (e *errand) bill(t *testing.T) usage.RunCost {
	t.Helper()
	if _, err := e.Spent(t.Context()); err != nil {
		t.Fatal(err)
	}
	ledger, err := e.app.Models.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs, err := ledger.Runs(t.Context(), usage.Filter{Run: e.Run})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return usage.RunCost{}
	}
	return runs[0]
}

// processes are those of this machine, sandboxes and all, whose command line
// has a mark in it.
func processes(t *testing.T, mark string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), mark) {
			found = append(found, path+": "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// soon waits for something to become true.
func soon(is func() bool) bool {
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
