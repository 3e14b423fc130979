package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// canary is a file that the command of every case would make, in its workspace
// and, were it to run on the host, beside it.
const canary = "canary"

// runCanary does what every verb that runs something does.
func (s *site) runCanary(ctx context.Context, a *app.App) error {
	got, err := a.Provide(ctx, session("closed"), provide.Options{})
	if err != nil {
		return err
	}
	defer got.Release()
	_, _, err = runScript(ctx, got, "touch "+filepath.Join(s.dir, canary)+" /workspace/"+canary)
	return err
}

// canaries finds every canary below the site.
func (s *site) canaries() (found []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if e.Name() == canary {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// Seen to fail without the check of p.Refusal in App.Provide, and with the exit
// code of a set-up ignored in Manager.runSetup: both times the command was run.
func TestInvariant_FAIL_CLOSED(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		spoil func(*site)
		kind  error // the error must be of this kind; nil: any
	}{
		{"no engine", func(s *site) { s.env["DOCKER_HOST"] = "unix://" + filepath.Join(s.dir, "none.sock") }, sandbox.ErrUnavailable},
		{"no engine, found by itself", func(s *site) {
			s.env["DOCKER_HOST"] = "unix://" + filepath.Join(s.dir, "none.sock")
			s.set("agents.defaults.sandbox.backend", "auto")
		}, sandbox.ErrUnavailable},
		{"an engine that hangs", func(s *site) { s.env["DOCKER_HOST"] = silentEngine(s.t, s.dir) }, context.DeadlineExceeded},
		{"a backend that is not there", func(s *site) { s.set("agents.defaults.sandbox.backend", "kubernetes") }, sandbox.ErrUnavailable},
		{"no image", func(s *site) { s.set("agents.defaults.sandbox.docker.image", "atoll-no-such-image:1") }, sandbox.ErrNoImage},
		{"a limit that cannot be enforced", func(s *site) { s.set("agents.defaults.sandbox.docker.cpus", 4096) }, sandbox.ErrUnsupported},
		{"a network that does not exist", func(s *site) { s.set("agents.defaults.sandbox.docker.network", "atoll-no-such-network") }, sandbox.ErrUnsupported},
		{"a bind that policy refuses", func(s *site) { s.set("agents.defaults.sandbox.docker.binds", []string{"/etc:/mnt:ro"}) }, sandbox.ErrDenied},
		{"a set-up that fails", func(s *site) {
			s.set("agents.defaults.sandbox.docker.setupCommand", "exit 3")
			s.set("agents.defaults.sandbox.docker.readOnlyRoot", false)
		}, nil},
		{"a set-up that cannot work", func(s *site) { s.set("agents.defaults.sandbox.docker.setupCommand", "apt-get install -y jq") }, sandbox.ErrDenied},
		{"a workspace that is a file", func(s *site) {
			s.write(filepath.Join(s.dir, "file"), "")
			s.set("agents.defaults.workspace", filepath.Join(s.dir, "file"))
			s.set("agents.defaults.sandbox.workspaceAccess", "rw")
		}, nil},
		{"a name that is taken by a stranger", func(s *site) {
			s.engine.run(s.name(s.open(), session("closed")), enginetest.TinyImage, nil)
		}, sandbox.ErrForeign},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c.spoil(s)
			a := s.open()
			wait := patience
			if errors.Is(c.kind, context.DeadlineExceeded) {
				wait = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			s.wantClosed(s.runCanary(ctx, a), c.kind)
			if rows := s.rows(a); len(rows) != 0 {
				t.Errorf("left in the registry: %+v", rows[0])
			}
			if left := s.ours(); len(left) != 0 {
				t.Errorf("left on the engine: %+v", left)
			}
		})
	}
	t.Run("a guest that does not answer", func(t *testing.T) { t.Parallel(); guestThatDoesNotAnswer(t) })
	t.Run("control: with everything in order the canary is there", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		if err := s.runCanary(t.Context(), s.open()); err != nil {
			t.Fatal(err)
		}
		if got := s.canaries(); len(got) != 1 || !within(s.state, got[0]) {
			t.Errorf("canaries %v: want one, in the private copy", got)
		}
	})
}

// wantClosed checks that a failure is one of the two kinds that stop a caller,
// says what to do, and left no trace of the command.
func (s *site) wantClosed(err, kind error) {
	s.t.Helper()
	if err == nil {
		s.t.Fatal("the command was run")
	}
	if _, ok := errors.AsType[*sandbox.ProvisionError](err); !ok && !errors.Is(err, sandbox.ErrDenied) {
		s.t.Errorf("%v (%T) is neither a *ProvisionError nor ErrDenied", err, err)
	}
	if kind != nil && !errors.Is(err, kind) {
		s.t.Errorf("%v is not %q", err, kind)
	}
	if errhint.Of(err) == "" && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("%v does not say what to do", err)
	}
	if got := s.canaries(); len(got) != 0 {
		s.t.Errorf("the command left %v", got)
	}
}

// guestThatDoesNotAnswer stops process 1 of a running sandbox from outside.
func guestThatDoesNotAnswer(t *testing.T) {
	s := newSite(t)
	first := s.open()
	got := s.provide(first, session("closed"))
	got.Release()
	first.Close()
	pid := s.engine.inspect(got.Name).State.Pid
	freeze(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	a := s.open()
	a.Manager.WireTimeout = 300 * time.Millisecond
	s.wantClosed(s.runCanary(t.Context(), a), nil)
	a.Manager.WireTimeout = sandbox.DefaultWireTimeout
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := s.runCanary(t.Context(), a); err != nil {
		t.Errorf("it answers again, but: %v", err)
	}
}

// freeze stops every thread of a process. The signal alone does not: as long as
// the thread that takes it has not run, others go on.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !isFrozen(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d does not stop", pid)
		}
	}
}

func isFrozen(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range threads {
		stat, _ := os.ReadFile(path)
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return len(threads) > 0
}

// silentEngine accepts connections and never says anything.
func silentEngine(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "silent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "unix://" + path
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
