//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	scripts       = "../../testdata/script"
	engineScripts = scripts + "/engine"

	// nowhere is an engine that does not exist.
	nowhere = "unix:///nowhere/docker.sock"
)

// TestMain makes the test program be atoll itself when a script calls it.
func TestMain(m *testing.M) {
	if groups, ok := os.LookupEnv(groupsVariable); ok {
		if err := becomeSomeone(strings.Fields(groups)); err != nil {
			panic(err)
		}
	}
	testscript.Main(sharing{m}, map[string]func(){"atoll": main})
}

// sharing removes what tests share when all have ended.
type sharing struct{ *testing.M }

func (s sharing) Run() int {
	code := s.M.Run()
	if sdksInstalled.dir != "" {
		_ = os.RemoveAll(sdksInstalled.dir)
	}
	return code
}

// TestScript runs the scripts that need no engine, and proves it: there is none.
func TestScript(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: withoutLong(files), Cmds: commands(), Condition: condition(false),
		Setup: func(env *testscript.Env) error {
			env.Defer(func() { removeSandboxes(t, env) })
			return setUp(env, nowhere)
		},
	})
}

// longScripts take seconds each: they are left out unless everything is run, or tests are
// chosen by -run.
var longScripts = []string{
	"agent", "agent_checkout", "approvals", "egress_attacks", "egress_gh", "gateway", "gateway_private", "overlay", "relay", "runs", "runs_directory", "runs_money",
	"shell_branch", "ssh", "sync_git", "sync_stopped",
}

// withoutLong returns the scripts that are run here.
func withoutLong(files []string) []string {
	if need.Everything() {
		return files
	}
	return slices.DeleteFunc(files, func(file string) bool {
		return slices.Contains(longScripts, strings.TrimSuffix(filepath.Base(file), ".txtar"))
	})
}

// TestEngineScript runs the scripts that use sandboxes, on the shared engine.
func TestEngineScript(t *testing.T) {
	if _, err := guestbin.For(runtime.GOARCH); err != nil {
		t.Fatalf("%v: %s", err, errhint.Of(err))
	}
	docker, podman := enginetest.Docker(t), enginetest.Podman(t)
	testscript.Run(t, testscript.Params{
		Dir: engineScripts, Cmds: commands(), Condition: condition(true),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PODMAN_HOST", podman)
			env.Defer(func() {
				removeSandboxes(t, env)
				if err := removeContainers(env.WorkDir, docker, podman); err != nil {
					t.Errorf("containers of %s: %v", env.WorkDir, err)
				}
			})
			return setUp(env, docker)
		},
	})
}

// linuxScripts are the scripts of engines that mean any machinery, not Docker.
var linuxScripts = []string{
	"crowded", "default_limits", "doctor", "drift", "egress", "egress_attacks", "egress_gh", "egress_pair", "egress_setup", "egress_verbs", "ends", "forward", "host_tools", "hot", "images_build", "inside", "list", "overlay", "prune", "recreate", "room", "run", "run_access", "run_env", "run_flags", "run_json", "run_rm", "run_signals",
	"run_streams", "runs_private", "service", "sessions", "ssh", "sync", "tools", "verify", "walls",
}

// directoryScripts are the scripts without an engine that an ordinary user runs too:
// everyday verbs on a directory, and the browser.
var directoryScripts = []string{"agent_checkout", "browser", "run_directory", "runs_directory"}

// condition answers what scripts ask of their machinery and of this machine.
func condition(engine bool) func(string) (bool, error) {
	return func(asked string) (bool, error) {
		switch asked {
		case engineCondition:
			return engine, nil
		case limitsCondition:
			if engine {
				return true, nil
			}
			return available(grouptest.Missing())
		case busyboxCondition:
			_, err := exec.LookPath("busybox")
			return available(err)
		}
		return false, fmt.Errorf("unknown condition %q", asked)
	}
}

// available tells whether a machine has what a script needs. Where all tests are
// run, that it has not is an error.
func available(missing error) (bool, error) {
	if missing != nil && os.Getenv(need.All) != "" {
		return false, missing
	}
	return missing == nil, nil
}

// TestLinuxScript runs scripts that use sandboxes without any engine, on the
// programs of this machine.
func TestLinuxScript(t *testing.T) {
	var files []string
	for _, name := range linuxScripts {
		files = append(files, filepath.Join(cmp.Or(os.Getenv(scriptsVariable), engineScripts), name+".txtar"))
	}
	if dir := os.Getenv(scriptsVariable); dir != "" { // root runs them in TestScript
		for _, name := range directoryScripts {
			files = append(files, filepath.Join(dir, name+".txtar"))
		}
	}
	testscript.Run(t, testscript.Params{
		Files: withoutLong(files), Cmds: commands(), Condition: condition(false),
		Setup: func(env *testscript.Env) error {
			env.Defer(func() { removeSandboxes(t, env) })
			err := setUp(env, nowhere)
			env.Setenv("BACKEND", "linux")
			return err
		},
	})
}

// setUp gives a script a home and a state directory of its own, and a prefix
// that no other script's containers have: they share the engine.
func setUp(env *testscript.Env, host string) error {
	home := filepath.Join(env.WorkDir, "home")
	for name, value := range map[string]string{
		"HOME": home, "ATOLL_STATE_DIR": filepath.Join(env.WorkDir, "state"), "DOCKER_HOST": host,
		"PREFIX": "atoll-script-" + strings.ToLower(rand.Text()[:8]) + "-",
		"IMAGE":  enginetest.Image, "BACKEND": "docker",
		"TERM": "xterm",
		// A program with the race detector sleeps for a second before it exits.
		"GORACE": "atexit_sleep_ms=0",
	} {
		env.Setenv(name, value)
	}
	return errors.Join(os.MkdirAll(home, 0o755), setUpModel(env))
}

// setUpModel gives a script a model: a server that plays the demonstration, at the
// address that the environment names for OpenAI's.
func setUpModel(env *testscript.Env) error {
	server, err := fakellm.Listen(context.Background(), "tcp", "127.0.0.1:0", fakellm.Demo())
	if err != nil {
		return err
	}
	server.BeginAnew()
	env.Defer(func() { _ = server.Close() })
	env.Setenv("OPENAI_API_KEY", "sk-none-needed")
	env.Setenv("OPENAI_BASE_URL", server.BaseURL())
	env.Setenv("MODEL_URL", server.BaseURL())
	return nil
}

const cleanupTimeout = time.Minute

// removeSandboxes removes every sandbox below a script's directory that needs no
// engine.
func removeSandboxes(t *testing.T, env *testscript.Env) {
	records, err := filepath.Glob(filepath.Join(env.WorkDir, "*", "linux", "*", "record.json"))
	if err != nil {
		t.Error(err)
	}
	for _, record := range records {
		state := filepath.Dir(filepath.Dir(filepath.Dir(record)))
		removeAll(t, env.WorkDir, state)
		removeAll(t, env.WorkDir, state, "--browser")
	}
}

// removeAll removes the sandboxes of an installation, or its browsers.
func removeAll(t *testing.T, home, state string, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "atoll", append([]string{"sandbox", "recreate", "--all", "--force", "--discard"}, flags...)...)
	cmd.Dir, cmd.Env = state, append(os.Environ(), "HOME="+home, "ATOLL_STATE_DIR="+state)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sandboxes of %s: %v: %s", state, err, out)
	}
}

// removeContainers removes every container of the installations below dir.
func removeContainers(dir string, hosts ...string) error {
	ids, err := installations(dir)
	for _, id := range ids {
		for _, host := range hosts {
			err = errors.Join(err, removeInstallation(id, host))
		}
	}
	return err
}

func installations(dir string) (ids []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "installation" || entry.IsDir() {
			return err
		}
		id, err := os.ReadFile(path)
		ids = append(ids, strings.TrimSpace(string(id)))
		return err
	})
	return ids, err
}

func removeInstallation(id, host string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	list, err := exec.CommandContext(ctx, "docker", "-H", host, "ps", "-aq", "--filter", "label="+sandbox.LabelInstallation+"="+id).Output()
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	names := strings.Fields(string(list))
	if len(names) == 0 {
		return nil
	}
	out, err := exec.CommandContext(ctx, "docker", append([]string{"-H", host, "rm", "-f"}, names...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("remove: %w: %s", err, out)
	}
	return nil
}
