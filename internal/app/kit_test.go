package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// patience bounds every step of a test: a loaded machine is slow, a broken one
// must not hang the build.
const patience = time.Minute

func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		os.Exit(obey(order))
	}
	goleak.VerifyTestMain(m)
}

// site is one installation on a real engine: a directory of its own with state,
// workspace and configuration, and a name that nothing else on the engine has.
type site struct {
	t      *testing.T
	dir    string
	state  string
	agent  string // the agent workspace
	tag    string // begins the name of every container
	env    map[string]string
	config map[string]any
	engine *engineAPI
}

// newSite makes an installation on the shared Docker engine, with the smallest
// image and a sandbox for every session.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOn(t, enginetest.Docker(t))
}

func newSiteOn(t *testing.T, host string) *site {
	t.Helper()
	// A short path: the sockets below it must fit into 108 bytes.
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, state: filepath.Join(dir, "state"), agent: filepath.Join(dir, "agent"), tag: "app-" + filepath.Base(dir)[len("atoll"):]}
	s.env = map[string]string{"ATOLL_STATE_DIR": s.state, "DOCKER_HOST": host, "CONTAINER_HOST": "unix://" + filepath.Join(dir, "no-podman.sock"), "HOME": dir}
	s.engine = newEngineAPI(t, host)
	s.mkdir(s.agent)
	s.set("agents.defaults.workspace", s.agent)
	s.set("agents.defaults.sandbox.mode", "all")
	s.set("agents.defaults.sandbox.scope", "session")
	s.set("agents.defaults.sandbox.backend", "docker")
	s.set("agents.defaults.sandbox.docker.image", enginetest.TinyImage)
	s.set("agents.defaults.sandbox.docker.containerPrefix", s.tag+"-")
	if host != noEngine {
		t.Cleanup(s.clear)
	}
	return s
}

// noEngine is the address of an engine that is not there.
const noEngine = "unix:///nowhere"

// set writes one value of the configuration; apps opened later see it.
func (s *site) set(path string, value any) {
	if s.config == nil {
		s.config = map[string]any{}
	}
	at, keys := s.config, strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
}

func (s *site) mkdir(dir string) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(path, text string) {
	s.t.Helper()
	s.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// configFile writes the configuration as it is now.
func (s *site) configFile() string {
	s.t.Helper()
	text, err := json.Marshal(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.dir, "atoll.json5")
	s.write(path, string(text))
	return path
}

// try opens the installation as a new process would.
func (s *site) try() (*app.App, error) {
	a, err := app.Open(s.t.Context(), provide.LoadOptions{Getenv: s.getenv, ConfigPath: s.configFile()})
	if err == nil {
		s.t.Cleanup(a.Close)
	}
	return a, err
}

func (s *site) open() *app.App {
	s.t.Helper()
	a, err := s.try()
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *site) getenv(name string) string { return s.env[name] }

// main is the session that most tests use.
func session(key string) provide.Subject { return provide.Subject{SessionKey: "agent:main:" + key} }

// provide makes a session's sandbox ready; it is released when the test ends.
func (s *site) provide(a *app.App, who provide.Subject) *provide.ReadySandbox {
	s.t.Helper()
	got, err := a.Provide(s.t.Context(), who, provide.Options{})
	if err != nil {
		s.t.Fatalf("provide: %v", err)
	}
	s.t.Cleanup(got.Release)
	return got
}

// name is the container of a session.
func (s *site) name(a *app.App, who provide.Subject) string {
	s.t.Helper()
	p, err := a.Plan(who)
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Spec.Name
}

// sh runs a script in a sandbox and returns its output; it must succeed.
func sh(t *testing.T, in *provide.ReadySandbox, script string) string {
	t.Helper()
	out, code, err := runScript(t.Context(), in, script)
	if err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v: %s", script, code, err, out)
	}
	return out
}

func runScript(ctx context.Context, in *provide.ReadySandbox, script string) (string, int, error) {
	var out bytes.Buffer
	result, err := in.Machine.Exec(ctx, &machine.Command{
		Argv: []string{"/bin/sh", "-c", script}, Dir: in.Plan.Spec.Workdir, Env: provide.CommandEnv(in.Plan, nil),
		Stdout: &out, Stderr: &out, Timeout: patience,
	})
	if err != nil {
		return out.String(), -1, err
	}
	return strings.TrimSpace(out.String()), result.ExitCode, nil
}

// clear removes every container of the installation from its engine.
func (s *site) clear() {
	id, err := os.ReadFile(filepath.Join(s.state, "installation"))
	if err != nil {
		return // it was never opened
	}
	for _, c := range s.engine.list(sandbox.LabelInstallation + "=" + strings.TrimSpace(string(id))) {
		s.engine.remove(c.ID)
	}
}

// ours lists the containers of the installation.
func (s *site) ours() []containerInfo {
	s.t.Helper()
	id, err := os.ReadFile(filepath.Join(s.state, "installation"))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.engine.list(sandbox.LabelInstallation + "=" + strings.TrimSpace(string(id)))
}

// rows are the registry's entries.
func (s *site) rows(a *app.App) []*sandbox.Entry {
	s.t.Helper()
	rows, err := a.Manager.Registry.List(s.t.Context(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}
