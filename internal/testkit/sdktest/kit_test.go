package sdktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	upstream "github.com/atoll-run/atoll/internal/model/litellm"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a program in a sandbox: a loaded machine is slow.
const patience = 10 * time.Minute

const masterKey = "sk-master-0123456789-of-the-upstream"

// installed is a directory of scripts/sdks.sh: that of the SDKs, or of agents.
func installed(t *testing.T, which ...string) string {
	t.Helper()
	need.Time(t, "it runs programs that npm has installed")
	out, err := exec.CommandContext(t.Context(), "../../../scripts/sdks.sh", append([]string{"dir"}, which...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		need.Missing(t, fmt.Errorf("nothing is installed in %s: run scripts/sdks.sh up %s", dir, strings.Join(which, " ")))
	}
	return dir
}

type object = map[string]any

// fixture is an installation with one sandbox, whose models are a scripted
// LiteLLM's.
type fixture struct {
	*testing.T
	upstream *litellmtest.Server
	app      *app.App
	models   *service.Proxy
	in       *provide.ReadySandbox
	options  provide.LoadOptions
	state    string
	began    time.Time
}

// fixtureOptions say how a desk is set up.
type fixtureOptions struct {
	backend string // linux or docker
	binds   []string
	models  map[string]litellmtest.Model
	llm     map[string]any // more of the configuration

	late      bool // LiteLLM writes its logs when told
	keyPerRun bool

	provider func(url string) object // another provider, at the same address
	env      map[string]string
	log      io.Writer
}

func newDesk(t *testing.T, o fixtureOptions) *fixture {
	t.Helper()
	upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey, Models: o.models, Late: o.late})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // sockets below it need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &fixture{T: t, upstream: upstream, state: filepath.Join(dir, "state"), began: time.Now()}
	env := map[string]string{"ATOLL_STATE_DIR": d.state, "HOME": dir, "LITELLM_MASTER_KEY": masterKey, "CONTAINER_HOST": "unix:///nowhere"}
	if o.backend == "docker" {
		env["DOCKER_HOST"] = enginetest.Docker(t)
	}
	maps.Copy(env, o.env)
	d.options = provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: d.config(dir, &o)}
	if o.log != nil {
		d.options.Logger = slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	d.app, err = app.Open(t.Context(), d.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.app.Close)
	d.provide()
	if d.models, err = d.app.Models.OpenProxy(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.models.Close() })
	return d
}

// config writes the configuration.
func (d *fixture) config(dir string, o *fixtureOptions) string {
	d.Helper()
	docker := object{"binds": append([]string{}, o.binds...), "dangerouslyAllowExternalBindSources": true, "containerPrefix": filepath.Base(dir) + "-"}
	if o.backend == "docker" {
		docker["image"] = enginetest.Image
	}
	providers := object{"litellm": object{"url": d.upstream.URL(), "keys": []any{object{"env": "LITELLM_MASTER_KEY"}}, "keyPerRun": o.keyPerRun}}
	if o.provider != nil {
		providers["other"] = o.provider(d.upstream.URL())
	}
	llm := object{"providers": providers}
	maps.Copy(llm, o.llm)
	workspace := filepath.Join(dir, "agent")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		d.Fatal(err)
	}
	text, err := json.Marshal(object{"llm": llm, "agents": object{"defaults": object{
		"workspace": workspace,
		"sandbox":   object{"mode": "all", "scope": "session", "backend": o.backend, "docker": docker},
	}}})
	if err != nil {
		d.Fatal(err)
	}
	file := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		d.Fatal(err)
	}
	return file
}

// provide makes the sandbox, which is removed in the end.
func (d *fixture) provide() {
	d.Helper()
	in, err := d.app.Provide(d.Context(), provide.Subject{SessionKey: "agent:main:peer"}, provide.Options{})
	if err != nil {
		d.Fatal(err)
	}
	d.in = in
	d.Cleanup(func() {
		in.Release()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		a, err := app.Open(ctx, d.options) // the first one may be closed
		if err != nil {
			d.Fatal(err)
		}
		defer a.Close()
		if err := a.Discard(ctx, in.Plan); err != nil {
			d.Error(err)
		}
	})
}

// grant opens a grant for a run that may call these models.
func (d *fixture) grant(run string, microUSD int64, models ...string) *service.ModelGrant {
	d.Helper()
	terms, err := service.Terms(d.in.Plan, "acct-7", models)
	if err != nil {
		d.Fatal(err)
	}
	terms.Run, terms.Until, terms.Budget = run, time.Now().Add(time.Hour), grant.Budget{MicroUSD: microUSD}
	g, err := d.models.Grant(d.Context(), d.in, terms)
	if err != nil {
		d.Fatal(err)
	}
	return g
}

// exec runs a program inside, under a grant, and returns what it printed.
func (d *fixture) exec(g *service.ModelGrant, stdin []byte, env map[string]string, argv ...string) string {
	d.Helper()
	for name, value := range service.ModelEnv() {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	var stdout, stderr bytes.Buffer
	result, err := d.in.Machine.Exec(d.Context(), &machine.Command{
		Argv: argv, Dir: d.in.Plan.Spec.Workdir, Grant: g.ID(), Env: provide.CommandEnv(d.in.Plan, env),
		Stdin: bytes.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Timeout: patience,
	})
	if err != nil || result.ExitCode != 0 {
		d.Fatalf("%s: %+v, %v\n%s\n%s", strings.Join(argv, " "), result, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// leaveKey makes a run's key as a process would that is killed afterwards.
func (d *fixture) leaveKey(run string) {
	d.Helper()
	key := secret.Literal{Value: secret.New(masterKey)}
	client := upstream.New(upstream.Options{URL: d.upstream.URL(), Key: key, HTTP: &http.Transport{DisableKeepAlives: true}})
	if _, err := client.MakeRunKey(d.Context(), upstream.KeyRequest{Run: run, Life: time.Hour}); err != nil {
		d.Fatal(err)
	}
	notes := filepath.Join(d.state, "usage", "keys")
	if err := os.MkdirAll(notes, 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(notes, "litellm@"+run), nil, 0o600); err != nil {
		d.Fatal(err)
	}
}
