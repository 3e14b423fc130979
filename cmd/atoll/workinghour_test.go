//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// maxQuestions is how often a person may be asked in an hour of an agent's work.
const maxQuestions = 3

// hourScript is the agent of the hour: it installs packages, runs tests and commits, as
// often as it is given a task.
func hourScript() fakellm.Script {
	const work = `cd /workspace/repo && npm install --no-audit --no-fund && npm test && cat /proc/sys/kernel/random/uuid >>log && git add -A && git commit -qm 'Do the work' && echo WORKED`
	return fakellm.Script{fakellm.Use("exec", `{"command":"`+work+`"}`), {When: "WORKED", Text: "Done."}}
}

// TestWorkingHour has an agent work in the mode that asks: packages are installed, tests
// run, and three commits pushed by the relay. A person who answers for later ones too is
// asked at most three times.
func TestWorkingHour(t *testing.T) {
	need.Time(t, "npm installs packages three times")
	need.Program(t, "npm", "npm")
	h := newHour(t)
	stop := h.answer(t)
	for n := range 3 {
		out, err := h.command(t.Context(), "atoll", "agent", "-m", "do it", "--run-id", fmt.Sprint("hour-", n), "--session-id", fmt.Sprint("s", n), "--branch", "hour").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	asked := stop()
	if len(asked) == 0 || len(asked) > maxQuestions {
		t.Errorf("a person was asked %d times: %q", len(asked), asked)
	}
	pushed, err := h.command(t.Context(), "git", "-C", h.path("remote.git"), "log", "--format=%s", "main..sandbox/hour").CombinedOutput()
	if err != nil || strings.Count(string(pushed), "Do the work\n") != 3 {
		t.Errorf("%v: pushed: %s", err, pushed)
	}
}

// hour is an installation with a project that has a dependency.
type hour struct {
	dir string
	env []string
}

func (h *hour) path(name string) string { return filepath.Join(h.dir, name) }

func (h *hour) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = h.dir, h.env, time.Minute
	return cmd
}

func newHour(t *testing.T) *hour {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") //nolint:usetesting // short, for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	h := &hour{dir: dir}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mux := http.NewServeMux()
	mux.Handle(npmName+"/", npmRegistry(t))
	n, err := internettest.Start(mux)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	model, err := fakellm.Listen(t.Context(), "tcp", "127.0.0.1:0", hourScript())
	if err != nil {
		t.Fatal(err)
	}
	model.BeginAnew()
	t.Cleanup(func() { _ = model.Close() })
	h.env = append(plainEnvironment(), "PATH="+os.Getenv("PATH"), "HOME="+dir, "ATOLL_STATE_DIR="+h.path("state"), "ATOLL_CONFIG="+h.path("atoll.json5"), "DOCKER_HOST="+nowhere,
		"OPENAI_API_KEY=none", "OPENAI_BASE_URL="+model.BaseURL(), "GIT_CONFIG_GLOBAL=/dev/null", "GORACE=atexit_sleep_ms=0")
	h.write(t, n)
	t.Cleanup(func() {
		out, err := h.command(context.WithoutCancel(t.Context()), "atoll", "sandbox", "recreate", "--all", "--force", "--discard").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return h
}

// write writes the configuration and the project, with its remote.
func (h *hour) write(t *testing.T, n *internettest.Internet) {
	t.Helper()
	for name, text := range map[string]string{
		"ca.pem": string(n.CA),
		"atoll.json5": fmt.Sprintf(`{ outbound: { caFile: %q }, relay: { repository: %q },
  agents: { defaults: { sandbox: { mode: "all", backend: "linux", egress: { mode: "ask", upstream: %q } } } } }`, h.path("ca.pem"), h.path("remote.git"), n.Proxy),
		"project/.npmrc": "registry=https://" + npmName + "/\n", "project/.gitignore": "node_modules\n",
		"project/package.json": `{"name": "project", "version": "1.0.0", "dependencies": {"hello": "^1.0.0"}, "scripts": {"test": "node -e 'require(\"hello/package.json\")'"}}` + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const script = `cd project && git init -q -b main && git add -A && git -c user.name=o -c user.email=o@example.org commit -qm first && git clone -q --bare . ../remote.git`
	if out, err := h.command(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// answer answers every question with a yes that counts for later ones, as a person does
// who looks now and then. The result ends that and returns the questions.
func (h *hour) answer(t *testing.T) (stop func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var asked []string
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			for id, summary := range h.open(ctx) {
				if err := h.command(ctx, "atoll", "approvals", "approve", id, "--for", "rule").Run(); err == nil {
					asked = append(asked, summary)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() []string { cancel(); work.Wait(); return asked }
}

// open returns the questions that wait, by id.
func (h *hour) open(ctx context.Context) map[string]string {
	out, err := h.command(ctx, "atoll", "approvals", "list", "--json").Output()
	var list struct {
		Approvals []struct{ ID, Summary string }
	}
	if err != nil || json.Unmarshal(out, &list) != nil {
		return nil
	}
	questions := map[string]string{}
	for _, q := range list.Approvals {
		questions[q.ID] = q.Summary
	}
	return questions
}
