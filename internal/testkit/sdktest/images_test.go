package sdktest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Images of the agents themselves are built without an engine, from what npm has of
// them, and the agents run in sandboxes of those. Claude Code is built always, the
// others are asked for as TestAgents is.
func TestAgentImages(t *testing.T) {
	need.Time(t, "it builds images of agents from npm's registry")
	need.Program(t, "npm", "npm")
	if out, err := exec.CommandContext(t.Context(), "npm", "ping").CombinedOutput(); err != nil {
		need.Missing(t, fmt.Errorf("npm reaches no registry: %w: %s", err, out))
	}
	wanted := []string{"claude"}
	if os.Getenv("ATOLL_TEST_AGENTS") != "" {
		wanted = []string{"claude", "codex", "gemini", "opencode"}
	}
	a := imagesApp(t)
	t.Run("pnpm", func(t *testing.T) { packagesOffline(t, a) })
	for _, id := range wanted {
		t.Run(id, func(t *testing.T) {
			p, err := preset.Find(preset.Builtin(), id)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			builder, err := a.ImageBuilder(func(line string) { lines = append(lines, line) })
			if err != nil {
				t.Fatal(err)
			}
			program := local.Program{Name: p.ID, Package: p.NPM.Package, Version: p.NPM.Version, Commands: []string{p.Program}}
			made, err := builder.Program(t.Context(), program, "")
			if err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(lines, "\n"))
			}
			if !made.Built || made.Version != p.NPM.Version || !slices.Contains(made.Image.Names, id+":"+made.Version) {
				t.Errorf("%+v", made)
			}
			if got := versionIn(t, a, id, p.Program); !strings.Contains(got, made.Version) {
				t.Errorf("%s --version: %q, want %s", p.Program, got, made.Version)
			}
			if again, err := builder.Program(t.Context(), program, ""); err != nil || again.Built || again.Image.ID != made.Image.ID {
				t.Errorf("the second time: %+v, %v", again, err)
			}
		})
	}
}

// packagesOffline lets a run install the packages of a lockfile without a network, from
// the store that pnpm filled in a sandbox. What a run writes there is gone with it.
func packagesOffline(t *testing.T, a *app.App) {
	t.Helper()
	builder, err := a.ImageBuilder(func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Program(t.Context(), local.Program{Name: "pnpm", Package: "pnpm", Version: "10.18.3", Commands: []string{"pnpm"}}, ""); err != nil {
		t.Fatal(err)
	}
	recipe, err := image.Find("pnpm-store")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Recipe(t.Context(), recipe, image.Options{Lockfile: lockfile(t)}); err != nil {
		t.Fatal(err)
	}
	if v, made, err := a.SeedVolume(t.Context(), "linux", provide.PnpmStore, "", io.Discard); err != nil || !made {
		t.Fatalf("%+v %v", v, err)
	}
	runs, err := a.Runs.Open(execute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runs.Close() }()
	const script = `test ! -e /pnpm-store/v10/trace && touch /pnpm-store/v10/trace && pnpm install --offline --frozen-lockfile --store-dir /pnpm-store >&2 && node -p 'require("is-number")(5)'`
	for _, id := range []string{"first", "second"} {
		r, err := runs.Do(t.Context(), &execute.Task{ID: id, Variant: "node", Timeout: patience, Messages: []chat.Message{{Role: chat.User, Text: script}}}, func(run.Event) {})
		if err != nil || r.Error != nil || r.Text != "true" {
			t.Errorf("%s: %+v %v", id, r, err)
		}
	}
	if err := a.RemoveVolume(t.Context(), "linux", provide.PnpmStore); err != nil {
		t.Error(err)
	}
}

func lockfile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../runtime/image/testdata/pnpm-lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// imagesConfig has a variant of runs that installs packages.
func imagesConfig(t *testing.T, dir string) string {
	t.Helper()
	text, err := json.Marshal(object{
		"llm":    object{"providers": object{"litellm": object{"url": "http://127.0.0.1:1", "keys": []any{object{"env": "LITELLM_MASTER_KEY"}}}}},
		"agents": object{"defaults": object{"workspace": dir, "model": "litellm/nobody-asks", "sandbox": object{"mode": "all", "backend": "linux"}}},
		"runs": object{"variants": object{"node": object{
			"image": "pnpm", "argv": []string{"/bin/sh", "-c", "{task}"}, "read": "text", "volumes": []string{provide.PnpmStore},
			"files": object{"pnpm-lock.yaml": string(lockfile(t)), "package.json": `{"private":true,"dependencies":{"is-number":"7.0.0"}}`},
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

func imagesApp(t *testing.T) *app.App {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // sockets below it need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "HOME": dir, "LITELLM_MASTER_KEY": masterKey, "DOCKER_HOST": "unix:///nowhere", "CONTAINER_HOST": "unix:///nowhere"}
	a, err := app.Open(t.Context(), provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: imagesConfig(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// versionIn asks a program of an image for its version, in a sandbox of its own.
func versionIn(t *testing.T, a *app.App, ref, program string) string {
	t.Helper()
	in, err := a.Provide(t.Context(), provide.Subject{SessionKey: "agent:main:" + ref, Adjust: func(agent *config.Agent) {
		agent.Sandbox.Docker.Image, agent.Sandbox.Backend = ref, provide.BackendLinux
		agent.Origins["sandbox.docker.image"] = config.Origin{Source: "agent"}
	}}, provide.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Release()
		if err := a.Discard(t.Context(), in.Plan); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	result, err := in.Machine.Exec(t.Context(), &machine.Command{Argv: []string{program, "--version"}, Dir: in.Plan.Spec.Workdir, Env: provide.CommandEnv(in.Plan, nil), Stdout: &out, Stderr: &out, Timeout: patience})
	if err != nil || result.ExitCode != 0 {
		t.Errorf("%+v %v", result, err)
	}
	return out.String()
}
