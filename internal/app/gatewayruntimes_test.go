package app_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// Programs find the same sandboxes on every runtime.
func TestGatewaySandboxOnEveryRuntime(t *testing.T) {
	t.Parallel()
	t.Run("linux", func(t *testing.T) { t.Parallel(); grouptest.Need(t); useSandbox(t, linuxSite(t), false) })
	t.Run("docker", func(t *testing.T) { t.Parallel(); useSandbox(t, newSite(t), true) })
	t.Run("podman", func(t *testing.T) {
		t.Parallel()
		s := newSiteOn(t, enginetest.Podman(t))
		s.env["CONTAINER_HOST"], s.env["DOCKER_HOST"] = s.env["DOCKER_HOST"], "unix:///nowhere"
		s.set("agents.defaults.sandbox.backend", "podman")
		useSandbox(t, s, true)
	})
}

// useSandbox does with a sandbox what programs do.
func useSandbox(t *testing.T, s *site, engine bool) {
	b := openBureau(s, execute.Options{})
	c := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	ctx := t.Context()
	box, err := c.CreateSandbox(ctx, &api.CreateSandbox{Env: map[string]string{"A": "b"}, Limits: &api.SandboxLimits{MemoryBytes: 128 << 20, Processes: 64}})
	if err != nil || !box.Running {
		t.Fatalf("%+v, %v", box, err)
	}
	if result, err := c.Exec(ctx, box.ID, &api.ExecRequest{Command: `echo "$A"; cat; pwd`, Stdin: []byte("in\n")}); err != nil || result.Stdout != "b\nin\n"+box.Workdir+"\n" {
		t.Errorf("%+v, %v", result, err)
	}
	copyThrough(ctx, t, c, box)
	measureSandbox(ctx, t, c, box)
	if _, err := c.CreateSandbox(ctx, &api.CreateSandbox{Limits: &api.SandboxLimits{MemoryBytes: 1 << 50}}); !isProblem(err, "limit_exceeds_quota") {
		t.Errorf("%v", err)
	}
	if fork, err := c.ForkSandbox(ctx, box.ID, &api.ForkSandbox{}); engine != isProblem(err, "not_supported") {
		t.Errorf("%+v, %v", fork, err)
	}
	useStopped(ctx, t, c, box)
	if gone, err := c.RemoveSandbox(ctx, box.ID); err != nil || gone.Running {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := c.Sandbox(ctx, box.ID); !isProblem(err, "sandbox_not_found") {
		t.Errorf("%v", err)
	}
}

// copyThrough sends a directory in, and reads a file of it.
func copyThrough(ctx context.Context, t *testing.T, c *client.Client, box *api.Sandbox) {
	t.Helper()
	dir := t.TempDir()
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	for path, text := range map[string][]byte{"a/b/data": content, "c": []byte("c")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if totals, err := c.CopyIn(ctx, box.ID, dir, "in"); err != nil || totals.Files != 2 || totals.LeftOut != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
	file, err := c.ReadFile(ctx, box.ID, "in/a/b/data")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// measureSandbox looks at what a sandbox uses while it works.
func measureSandbox(ctx context.Context, t *testing.T, c *client.Client, box *api.Sandbox) {
	t.Helper()
	p, err := c.StartProcess(ctx, box.ID, &api.StartProcess{Command: "while :; do :; done"})
	if err != nil {
		t.Fatal(err)
	}
	var m *api.SandboxMetrics
	eventually(t, "it uses nothing", func() bool {
		m, err = c.SandboxMetrics(ctx, box.ID)
		return err != nil || m.CPUMs >= 50
	})
	if err != nil || m.MemoryBytes < 4<<10 || m.MemoryLimitBytes != 128<<20 || m.Processes < 2 || m.ProcessesLimit != 64 || m.WorkspaceBytes < 1_000_001 || m.WorkspaceFiles < 5 || m.At.IsZero() {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.EndProcess(ctx, box.ID, p.ID); err != nil {
		t.Error(err)
	}
}

// useStopped stops a sandbox, which has no metrics and no commands then, and starts it.
func useStopped(ctx context.Context, t *testing.T, c *client.Client, box *api.Sandbox) {
	t.Helper()
	if stopped, err := c.StopSandbox(ctx, box.ID); err != nil || stopped.Running {
		t.Errorf("%+v, %v", stopped, err)
	}
	if _, err := c.SandboxMetrics(ctx, box.ID); !isProblem(err, "sandbox_stopped") {
		t.Errorf("%v", err)
	}
	if _, err := c.Exec(ctx, box.ID, shell("true")); !isProblem(err, "sandbox_stopped") {
		t.Errorf("%v", err)
	}
	if started, err := c.StartSandbox(ctx, box.ID); err != nil || !started.Running {
		t.Errorf("%+v, %v", started, err)
	}
	if result, err := c.Exec(ctx, box.ID, shell("cat in/c")); err != nil || result.Stdout != "c" {
		t.Errorf("%+v, %v", result, err)
	}
}

// A kill wins over every use of a sandbox: all of them end, and say so.
func TestGatewayKillWinsOverUse(t *testing.T) {
	t.Parallel()
	b := openBureau(linuxSite(t), execute.Options{})
	c := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	ctx := t.Context()
	box, err := c.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.StartProcess(ctx, box.ID, &api.StartProcess{Command: "yes", Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]func() error{
		"exec":   func() error { _, err := c.Exec(ctx, box.ID, shell("sleep 1000")); return err },
		"stream": func() error { _, err := c.ExecStream(ctx, box.ID, shell("yes"), client.Output{}); return err },
		"follow": func() error { _, err := c.FollowProcess(ctx, box.ID, p.ID, client.Output{}); return err },
		"watch": func() error {
			return c.WatchFiles(ctx, box.ID, api.WatchQuery{Path: "."}, func(*api.FileChange) error { return nil })
		},
		"upload": func() error {
			_, err := c.WriteFile(ctx, box.ID, api.WriteFileQuery{Path: "big"}, slowFile{})
			return err
		},
	}
	ended := make(chan string, len(uses))
	for name, use := range uses {
		go func() {
			if err := use(); err == nil {
				t.Errorf("%s: no error", name)
			}
			ended <- name
		}()
	}
	eventually(t, "nothing works in it", func() bool {
		result, err := c.Exec(ctx, box.ID, shell("ls big; cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
		return err == nil && strings.Count(result.Stdout, "yes") >= 2 && strings.Contains(result.Stdout, "sleep 1000")
	})
	if gone, err := c.RemoveSandbox(ctx, box.ID); err != nil || gone.Running {
		t.Errorf("%+v, %v", gone, err)
	}
	for range uses {
		<-ended
	}
	s := b.site
	if left, err := filepath.Glob(filepath.Join(s.state, "sandboxes", "agent-api-*")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// slowFile is a file without an end, which comes slowly.
type slowFile struct{}

func (slowFile) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return min(len(b), 1024), nil
}
