//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// service is a long-running container that Atoll did not make: a gateway, whose
// user is 1001 and whose workspace is a named volume.
type service struct {
	t    *testing.T
	host string
	name string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t, enginetest.Docker(t), "atoll-service-" + strings.ToLower(rand.Text()[:10])}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		s.docker(ctx, "rm", "-f", "-v", s.name)
		s.docker(ctx, "volume", "rm", "-f", s.name)
	})
	s.docker(t.Context(), "volume", "create", s.name)
	s.docker(t.Context(), "run", "--rm", "--network", "none", "--user", "0", "-v", s.name+":/workspace", enginetest.Image, "chown", "1001:1001", "/workspace")
	s.docker(t.Context(), "run", "-d", "--init", "--read-only", "--name", s.name, "--network", "none", "--user", "1001:1001", "--cap-drop", "ALL",
		"-v", s.name+":/workspace", enginetest.Image, "sleep", "infinity")
	return s
}

func (s *service) docker(ctx context.Context, args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(ctx, "docker", append([]string{"-H", s.host}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Errorf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// sh is what happens in the service, as its user.
func (s *service) sh(script string) string {
	s.t.Helper()
	return s.docker(s.t.Context(), "exec", s.name, "sh", "-c", script)
}

const serviceCommit = `cd /workspace/current && git add -A && git commit -qm `

// TestRelayFromAContainer: an agent works in a container that Atoll did not make.
// The branch is put there and the commits are taken out, without a credential;
// the volume stays as it is, and the next work on the branch resets it.
func TestRelayFromAContainer(t *testing.T) {
	d, s := newRelayDemo(t), newService(t)
	d.env = append(d.env, "DOCKER_HOST="+s.host)
	ctx := t.Context()
	if out := d.atoll(ctx, "relay", "prepare", "--container", s.name, "--branch", "gw", "--run-id", "r1"); !strings.Contains(out, "sandbox/gw is ready") {
		t.Fatal(out)
	}
	if got := s.sh("id -u; stat -c %u /workspace/wt/gw; readlink /workspace/current; cat /workspace/current/README.md; git -C /workspace/current branch --show-current"); got != "1001\n1001\n/workspace/wt/gw\nhello\nsandbox/gw" {
		t.Errorf("inside: %s", got)
	}
	s.sh("echo 1 > /workspace/current/one; " + serviceCommit + "one")
	d.refused(ctx, "run r1 works on sandbox/gw", "relay", "prepare", "--container", s.name, "--branch", "gw", "--run-id", "r2")
	if out := d.atoll(ctx, "relay", "take", "r1"); !strings.Contains(out, "r1: https://github.example.com/org/project/pull/1") {
		t.Error(out)
	}
	s.sh("echo left > /workspace/current/dirty; echo kept > /workspace/kept")
	if out := d.atoll(ctx, "relay", "prepare", "--container", s.name, "--branch", "gw", "--run-id", "r2"); !strings.Contains(out, "were stashed") {
		t.Error(out)
	}
	s.sh("test ! -e /workspace/current/dirty && test -e /workspace/kept; echo 2 > /workspace/current/two; " + serviceCommit + "two")
	d.atoll(ctx, "relay", "take", "r2")
	if got := d.server.Git(t, "org/project", "log", "--reverse", "--format=%an:%s", "main..sandbox/gw"); got != "Atoll:one\nAtoll:two" {
		t.Errorf("the branch has %s", got)
	}
	if pulls := d.hub.Pulls(); len(pulls) != 1 {
		t.Errorf("%+v", pulls)
	}
	if got := s.sh("ls -A /workspace | grep '^.atoll-'; grep -rasc 'ghp_canar[y]' /workspace | grep -v ':0$'; true"); got != "" {
		t.Errorf("left in the container: %s", got)
	}
	// The last process that carried a wire ends when the engine tells it that the wire did.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got := s.docker(ctx, "top", s.name)
		if !strings.Contains(got, "guest") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left in the container: %s", got)
		}
	}
	d.searchFiles(filepath.Join(d.dir, "state"))
	d.refused(ctx, "nothing was prepared for run", "relay", "take", "r2")
	d.refused(ctx, "no directory can be made in /usr", "relay", "prepare", "--container", s.name, "--workspace", "/usr", "--branch", "gw", "--run-id", "r3")
	d.refused(ctx, "container \"atoll-none\"", "relay", "prepare", "--container", "atoll-none", "--branch", "gw", "--run-id", "r3")
}

// refused runs the program, which must fail with these words.
func (d *relayDemo) refused(ctx context.Context, words string, args ...string) {
	d.t.Helper()
	if out, err := d.command(ctx, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), words) {
		d.t.Errorf("atoll %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
