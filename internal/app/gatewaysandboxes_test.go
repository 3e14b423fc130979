package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// shell is a command line to run.
func shell(line string) *api.ExecRequest { return &api.ExecRequest{Command: line} }

// isProblem reports whether an error is a problem of this code.
func isProblem(err error, code string) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Code == code
}

// A program makes a sandbox over HTTP, runs commands in it, moves files and removes it.
func TestGatewaySandbox(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{Env: map[string]string{"GREETING": "hello"}, Metadata: map[string]string{"user": "ann"}, TimeoutSeconds: 600})
	if err != nil {
		t.Fatal(err)
	}
	if box.ID == "" || !box.Running || box.Metadata["user"] != "ann" || box.Workdir != "/workspace" || box.OnDeadline != "remove" || time.Until(box.Deadline) < 9*time.Minute {
		t.Errorf("%+v", box)
	}
	result, err := g.Exec(t.Context(), box.ID, &api.ExecRequest{Command: `echo "$GREETING $WHO"; cat; ls -A; echo oops >&2; exit 3`, Env: map[string]string{"WHO": "you"}, Stdin: []byte("typed\n")})
	if err != nil || result.ExitCode != 3 || result.Stdout != "hello you\ntyped\n" || result.Stderr != "oops\n" {
		t.Errorf("%+v, %v", result, err)
	}
	if result, err := g.Exec(t.Context(), box.ID, &api.ExecRequest{Argv: []string{"no-such-program"}}); err != nil || result.ExitCode != 127 || result.Error == "" {
		t.Errorf("%+v, %v", result, err)
	}
	if result, err := g.Exec(t.Context(), box.ID, &api.ExecRequest{Argv: []string{"sleep", "100"}, TimeoutSeconds: 0.2}); err != nil || !result.TimedOut || result.ExitCode != 124 {
		t.Errorf("%+v, %v", result, err)
	}
	content := bytes.Repeat([]byte{0, 1, 2, 255, '\n'}, 1<<18)
	info, err := g.WriteFile(t.Context(), box.ID, api.WriteFileQuery{Path: "deep/er/data.bin"}, bytes.NewReader(content))
	if err != nil || info.Size != int64(len(content)) || info.Path != "/workspace/deep/er/data.bin" {
		t.Errorf("%+v, %v", info, err)
	}
	file, err := g.ReadFile(t.Context(), box.ID, "/workspace/deep/er/data.bin")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(file)
	_ = file.Close()
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := g.ReadFile(t.Context(), box.ID, "missing"); !isProblem(err, "file_not_found") {
		t.Errorf("%v", err)
	}
	if gone, err := g.RemoveSandbox(t.Context(), box.ID); err != nil || gone.Running {
		t.Errorf("%+v, %v", gone, err)
	}
	s.nothingMade(g)
	if _, err := g.Exec(t.Context(), box.ID, shell("true")); !isProblem(err, "sandbox_not_found") {
		t.Errorf("%v", err)
	}
}

// nothingMade looks for what a removed sandbox should not leave.
func (s *site) nothingMade(g *gatewayProcess) {
	s.t.Helper()
	list, err := g.Sandboxes(s.t.Context(), api.SandboxQuery{})
	if err != nil || len(list.Sandboxes) != 0 {
		s.t.Errorf("%+v, %v", list, err)
	}
	left, err := filepath.Glob(filepath.Join(s.state, "sandboxes", "[^.]*"))
	if err != nil || len(left) != 0 {
		s.t.Errorf("%v, %v", left, err)
	}
}

// What a command prints comes as it is written; a reader that is slow holds the command
// up, and nothing is lost.
func TestGatewayExecStream(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	const lines = 200_000
	var out slowCounter
	var errs bytes.Buffer
	result, err := g.ExecStream(t.Context(), box.ID, shell("seq 1 200000; echo end >&2"), client.Output{Stdout: &out, Stderr: &errs})
	if err != nil || result.ExitCode != 0 || out.lines != lines || errs.String() != "end\n" || result.Stdout != "" {
		t.Errorf("%+v, %v: %d lines, %q", result, err, out.lines, errs.String())
	}
	// A reader that leaves ends the command.
	ctx, leave := context.WithCancel(t.Context())
	started := writerFunc(func([]byte) (int, error) { leave(); return 0, context.Canceled })
	if _, err := g.ExecStream(ctx, box.ID, shell("echo begun; touch begun; exec sleep 987654"), client.Output{Stdout: started}); err == nil {
		t.Error("no error")
	}
	eventually(t, "the command goes on", func() bool {
		found, err := g.Exec(t.Context(), box.ID, shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 987654'"))
		return err == nil && strings.TrimSpace(found.Stdout) == "0"
	})
}

// slowCounter counts lines, and pauses at times.
type slowCounter struct {
	lines, writes int
}

func (c *slowCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte("\n"))
	if c.writes++; c.writes%8 == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Deadlines hold across a restart of the gateway, and are moved by extend; a kill wins
// over what is done inside.
func TestGatewayDeadlines(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Second)
	short, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{TimeoutSeconds: 2})
	if err != nil {
		t.Fatal(err)
	}
	long, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{TimeoutSeconds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := g.ExtendSandbox(t.Context(), long.ID, 900); err != nil || time.Until(moved.Deadline) < 14*time.Minute {
		t.Fatalf("%+v, %v", moved, err)
	}
	if result, err := g.Exec(t.Context(), short.ID, shell("sleep 100")); err == nil {
		t.Errorf("%+v", result)
	}
	if over := time.Since(short.Deadline); over < 0 {
		t.Errorf("ended %v before its deadline", -over)
	}
	eventually(t, "a sandbox is there after its deadline", func() bool {
		_, err := g.Sandbox(t.Context(), short.ID)
		return isProblem(err, "sandbox_not_found")
	})
	if _, err := g.ExtendSandbox(t.Context(), long.ID, 1); err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGKILL)
	_ = g.ended()
	again := s.gateway(time.Second)
	eventually(t, "a deadline of before the restart is forgotten", func() bool {
		_, err := again.Sandbox(t.Context(), long.ID)
		return isProblem(err, "sandbox_not_found")
	})
	s.nothingMade(again)
}

// Accounts never see each other's sandboxes.
func TestInvariant_SANDBOX_OF_ONE_ACCOUNT(t *testing.T) {
	t.Parallel()
	b := openBureau(linuxSite(t), execute.Options{})
	mine := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	other := restClient(b, access.Caller{Token: "o", Scope: access.Admin, Account: "other"})
	looker := restClient(b, access.Caller{Token: "r", Scope: access.Read, Account: "acme"})
	box, err := mine.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil || box.Account != "acme" || box.WorkspaceDir != "" {
		t.Fatalf("%+v, %v", box, err)
	}
	for _, name := range []string{box.ID, box.ContainerName} {
		for what, try := range sandboxCalls(t.Context(), name) {
			if err := try(other); !isProblem(err, "sandbox_not_found") {
				t.Errorf("%s of another account: %v", what, err)
			}
		}
	}
	if _, err := looker.Exec(t.Context(), box.ID, shell("true")); !isProblem(err, "forbidden") {
		t.Errorf("%v", err)
	}
	if seen, err := looker.Sandbox(t.Context(), box.ID); err != nil || seen.ID != box.ID {
		t.Errorf("%+v, %v", seen, err)
	}
	if list, err := other.Sandboxes(t.Context(), api.SandboxQuery{}); err != nil || len(list.Sandboxes) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := mine.CreateSandbox(t.Context(), &api.CreateSandbox{Account: "other"}); !isProblem(err, "other_account") {
		t.Errorf("%v", err)
	}
	if _, err := mine.RemoveSandbox(t.Context(), box.ID); err != nil {
		t.Error(err)
	}
}

// sandboxCalls are the calls on one sandbox.
func sandboxCalls(ctx context.Context, id string) map[string]func(*client.Client) error {
	return map[string]func(*client.Client) error{
		"get":  func(c *client.Client) error { _, err := c.Sandbox(ctx, id); return err },
		"exec": func(c *client.Client) error { _, err := c.Exec(ctx, id, shell("true")); return err },
		"read": func(c *client.Client) error { _, err := c.ReadFile(ctx, id, "/etc/passwd"); return err },
		"write": func(c *client.Client) error {
			_, err := c.WriteFile(ctx, id, api.WriteFileQuery{Path: "x"}, strings.NewReader("x"))
			return err
		},
		"extend": func(c *client.Client) error { _, err := c.ExtendSandbox(ctx, id, 60); return err },
		"stop":   func(c *client.Client) error { _, err := c.StopSandbox(ctx, id); return err },
		"start":  func(c *client.Client) error { _, err := c.StartSandbox(ctx, id); return err },
		"remove": func(c *client.Client) error { _, err := c.RemoveSandbox(ctx, id); return err },
	}
}

// Requests that cannot be meant make nothing, and say which member is wrong.
func TestGatewaySandboxBadRequests(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	many := map[string]string{}
	for i := range 65 {
		many[strings.Repeat("x", i+1)] = ""
	}
	for name, c := range map[string]struct {
		body          api.CreateSandbox
		code, pointer string
	}{
		"no such image":        {api.CreateSandbox{Image: "no-such-image:1"}, "no_such_image", ""},
		"an image as a flag":   {api.CreateSandbox{Image: "--privileged"}, "invalid_request", "/image"},
		"a deadline too far":   {api.CreateSandbox{TimeoutSeconds: 2_592_001}, "invalid_request", "/timeoutSeconds"},
		"a negative deadline":  {api.CreateSandbox{TimeoutSeconds: -1}, "invalid_request", "/timeoutSeconds"},
		"an unknown end":       {api.CreateSandbox{OnDeadline: "explode"}, "invalid_request", "/onDeadline"},
		"much metadata":        {api.CreateSandbox{Metadata: many}, "invalid_request", "/metadata"},
		"a secret":             {api.CreateSandbox{Env: map[string]string{"AWS_SECRET_ACCESS_KEY": "x"}}, "invalid_request", "/env/AWS_SECRET_ACCESS_KEY"},
		"a name that is none":  {api.CreateSandbox{Env: map[string]string{"A=B": "x"}}, "invalid_request", "/env"},
		"negative memory":      {api.CreateSandbox{Limits: &api.SandboxLimits{MemoryBytes: -1}}, "invalid_request", "/limits/memoryBytes"},
		"too many processors":  {api.CreateSandbox{Limits: &api.SandboxLimits{CPUs: 1e9}}, "invalid_request", "/limits/cpus"},
		"two lines of account": {api.CreateSandbox{Account: "a\nb"}, "invalid_request", "/account"},
	} {
		_, err := g.CreateSandbox(t.Context(), &c.body)
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != c.code || c.pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	s.nothingMade(g)
}

// Another process finds a program's sandbox as it was made, and makes none of its own
// for agent api.
func TestGatewaySandboxFromOutside(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{Env: map[string]string{"A": "b"}, Limits: &api.SandboxLimits{Processes: 99}})
	if err != nil {
		t.Fatal(err)
	}
	a := s.open()
	who, err := a.Find(t.Context(), box.ContainerName)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := a.Provide(t.Context(), who, provide.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ready.Created || ready.Name != box.ContainerName || ready.Plan.Env.Passed["A"] != "b" || ready.Plan.Spec.Limits.Pids != 99 {
		t.Errorf("%+v, %+v", ready.Handle, ready.Plan.Spec)
	}
	// A removal wins over this use.
	if gone, err := g.RemoveSandbox(t.Context(), box.ID); err != nil || gone.Running {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := g.Sandbox(t.Context(), box.ID); !isProblem(err, "sandbox_not_found") {
		t.Errorf("%v", err)
	}
	ready.Release()
	eventually(t, "its files stay", func() bool {
		left, err := filepath.Glob(filepath.Join(s.state, "sandboxes", "agent-api-*"))
		return err == nil && len(left) == 0
	})
	if _, err := a.Provide(t.Context(), provide.Subject{SessionKey: "agent:api:mine"}, provide.Options{}); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("%v", err)
	}
}
