package linux_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// lab is a state directory with sandboxes whose roots can be changed.
type lab struct {
	t       *testing.T
	state   string
	image   string
	runtime sandbox.Runtime
	manager *sandbox.Manager
}

func newLab(t *testing.T) *lab { return newLabIn(t, t.TempDir()) }

func newLabIn(t *testing.T, state string) *lab {
	t.Helper()
	l := &lab{t: t, state: state, image: rootfs.HostName}
	l.runtime = open(t, l.state)
	db, err := store.Open(t.Context(), filepath.Join(l.state, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	book, err := filelock.Open(filepath.Join(l.state, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	l.manager = sandbox.NewManager(sandbox.Options{Registry: sandbox.NewRegistry(db), Leases: book, WireTimeout: time.Minute,
		Runtime: func(context.Context, string) (sandbox.Runtime, error) { return l.runtime, nil }})
	ctx := context.WithoutCancel(t.Context()) // for when the test has ended
	t.Cleanup(func() {
		l.manager.Close()
		_ = db.Close()
		for _, name := range []string{"one", "two", "three"} {
			if inst, err := l.runtime.Open(ctx, name); err == nil {
				if err := inst.Remove(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return l
}

func (l *lab) spec(name string) *sandbox.Spec {
	return &sandbox.Spec{Name: name, ScopeKey: "agent:main:" + name, AgentID: "main", Backend: "linux", ConfigHash: "h", MountsHash: "m",
		Image: l.image, Workdir: "/", Network: "none", CapDrop: []string{"ALL"}}
}

// sh runs a script in the sandbox of a name, starting it if needed.
func (l *lab) sh(name, script string) string {
	l.t.Helper()
	h, err := l.manager.Ensure(l.t.Context(), l.spec(name))
	if err != nil {
		l.t.Fatal(err)
	}
	defer h.Release()
	var out bytes.Buffer
	res, err := h.Machine.Exec(l.t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out, Timeout: time.Minute})
	if err != nil || res.ExitCode != 0 {
		l.t.Fatalf("%s: %+v, %v: %s", script, res, err, &out)
	}
	return strings.TrimSpace(out.String())
}

func (l *lab) fork(from, to string, o sandbox.ForkOptions) error {
	return l.manager.Fork(l.t.Context(), from, l.spec(to), o)
}

const show = "cat /opt/file /home/new 2>/dev/null; test -e /srv || echo no srv"

func TestForkOfAStoppedSandboxSharesItsFiles(t *testing.T) {
	l := newLab(t)
	l.sh("one", "echo first >/opt/file; rmdir /srv")
	if err := l.fork("one", "two", sandbox.ForkOptions{Stop: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two", "one"} {
		if got := l.sh(name, show); got != "first\nno srv" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	// From here on they are two.
	l.sh("one", "echo changed >/opt/file")
	l.sh("two", "echo mine >/home/new; echo more >>/opt/file")
	if got := l.sh("one", show); got != "changed\nno srv" {
		t.Errorf("one holds %q", got)
	}
	if got := l.sh("two", show); got != "first\nmore\nmine\nno srv" {
		t.Errorf("two holds %q", got)
	}
	// A fork of the fork, and the first is gone: its layers are still there.
	if err := l.fork("two", "three", sandbox.ForkOptions{Stop: true}); err != nil {
		t.Fatal(err)
	}
	if err := l.manager.ForceRemove(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	l.collect()
	if got := l.sh("three", show); got != "first\nmore\nmine\nno srv" {
		t.Errorf("three holds %q", got)
	}
	for _, name := range []string{"two", "three"} {
		if err := l.manager.ForceRemove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	l.collect()
	if left, err := filepath.Glob(filepath.Join(l.state, "images", "layers", "*")); err != nil || len(left) > 0 {
		t.Errorf("layers left: %v, %v", left, err)
	}
}

func (l *lab) collect() {
	l.t.Helper()
	roots, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{})
	if err == nil {
		_, err = roots.Collect(l.t.Context(), nil)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// sharing mounts a file system whose files can share blocks.
func sharing(t *testing.T) string {
	t.Helper()
	need.Root(t, "it mounts a file system")
	need.Program(t, "mkfs.btrfs", "btrfs-progs")
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, argv := range [][]string{{"truncate", "-s", "256M", image}, {"mkfs.btrfs", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s (the kernel needs btrfs)", argv, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Every file of a running sandbox is in its fork, whole, with what was removed
// and what replaced it; from then on each has its own.
func TestForkOfARunningSandboxSharesBlocks(t *testing.T) {
	l := newLabIn(t, sharing(t))
	l.sh("one", "echo live >/opt/file; rmdir /srv; rmdir /home; mkdir /home; echo new >/home/new; (sleep 300 >/dev/null 2>&1 &)")
	if err := l.fork("one", "two", sandbox.ForkOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := l.sh("two", show+"; pidof sleep || echo no process"); got != "live\nnew\nno srv\nno process" {
		t.Errorf("two holds %q", got)
	}
	l.sh("two", "echo other >/opt/file")
	if got := l.sh("one", "cat /opt/file; pidof sleep >/dev/null && echo it runs on"); got != "live\nit runs on" {
		t.Errorf("one holds %q", got)
	}
}

func TestForkOfARunningSandboxNeedsSharedBlocks(t *testing.T) {
	l := newLab(t)
	l.sh("one", "echo live >/opt/file")
	dir, err := os.Open(l.state)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if clone.CanShare(dir) == nil { // such as on a developer's laptop: /dev/shm never can
		l = newLabIn(t, shm(t))
		l.sh("one", "echo live >/opt/file")
	}
	err = l.fork("one", "two", sandbox.ForkOptions{})
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "it is running") || !strings.Contains(errhint.Of(err), "--stop") {
		t.Errorf("error = %v, hint %q", err, errhint.Of(err))
	}
	if _, err := l.runtime.Open(t.Context(), "two"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("something was left: %v", err)
	}
	if got := l.sh("one", "cat /opt/file"); got != "live" {
		t.Errorf("one holds %q", got)
	}
}

func shm(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "atoll") //nolint:usetesting // on that file system
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestForkRefuses(t *testing.T) {
	l := newLab(t)
	l.sh("one", "true")
	l.sh("two", "true")
	other := l.spec("three")
	other.Account = "somebody-else"
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"a name that is taken":    {l.fork("one", "two", sandbox.ForkOptions{Stop: true}), sandbox.ErrExists},
		"itself":                  {l.fork("one", "one", sandbox.ForkOptions{Stop: true}), sandbox.ErrExists},
		"a source that is not":    {l.fork("nobody", "three", sandbox.ForkOptions{}), sandbox.ErrNotFound},
		"another billing account": {l.manager.Fork(t.Context(), "one", other, sandbox.ForkOptions{Stop: true}), sandbox.ErrDenied},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	h, err := l.manager.Ensure(t.Context(), l.spec("one"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if err := l.fork("one", "three", sandbox.ForkOptions{Stop: true}); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("while somebody works in it: %v", err)
	}
}

func TestForkThatFailsTakesItsFilesAway(t *testing.T) {
	l := newLab(t)
	l.sh("one", "echo x >/opt/file")
	failure := errors.New("no space")
	undone := false
	err := l.fork("one", "two", sandbox.ForkOptions{Stop: true,
		Files: func(_ context.Context, running bool) error { return map[bool]error{false: failure}[running] },
		Undo:  func(context.Context) error { undone = true; return nil }})
	if !errors.Is(err, failure) || !undone {
		t.Errorf("error = %v, undone %v", err, undone)
	}
	if _, err := l.manager.Registry.Get(t.Context(), "two"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("a row was left: %v", err)
	}
	if got := l.sh("one", "cat /opt/file"); got != "x" {
		t.Errorf("one holds %q", got)
	}
}
