package linux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// What is written to a disk in a second is bounded, and the sandbox can read by
// what.
func TestDisksAreLimited(t *testing.T) {
	l := newSite(t)
	work := l.dir("work")
	mounted := func(s *sandbox.Spec) {
		s.Mounts = []sandbox.Mount{{Source: work, Target: "/workspace", Kind: sandbox.MountWorkspace}}
	}
	const megabyte = 1 << 20
	limited := func(s *sandbox.Spec) {
		s.Limits.IO = sandbox.IO{WriteBps: 2 * megabyte, ReadBps: 64 * megabyte, ReadIOps: 5000, WriteIOps: 4000}
	}
	l.needs(mounted, limited)
	i := l.start(mounted, limited)
	numbers := l.sh(i, "cat /sys/fs/cgroup/io.max /sys/fs/cgroup/blkio/blkio.throttle.*_device 2>/dev/null || true")
	for _, want := range []string{"2097152", "67108864", "5000", "4000"} {
		if !strings.Contains(numbers, want) {
			t.Errorf("no %s in %q", want, numbers)
		}
	}
	begin := time.Now()
	l.sh(i, "dd if=/dev/zero of=/workspace/slow bs=1M count=6 oflag=direct 2>&1")
	if took := time.Since(begin); took < 1500*time.Millisecond {
		t.Errorf("6 MiB at 2 MiB a second were written in %v", took)
	}
}

// Limits of disks that nothing here can keep are refused by name.
func TestDiskLimitsAreRefused(t *testing.T) {
	l := newSite(t)
	memory, err := os.MkdirTemp("/dev/shm", "atoll") //nolint:usetesting // a file system in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(memory) })
	for name, c := range map[string]struct {
		change func(*sandbox.Spec)
		want   string
	}{
		"a workspace in memory": {func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{{Source: memory, Target: "/workspace", Kind: sandbox.MountWorkspace}}
			s.Limits.IO.WriteBps = 1 << 20
		}, "docker.deviceReadBps"},
		"a storage that is too small": {func(s *sandbox.Spec) { s.ReadOnlyRoot, s.Limits.Storage.Size = false, 1<<20 }, "docker.storageOpt"},
		"files without a size":        {func(s *sandbox.Spec) { s.ReadOnlyRoot, s.Limits.Storage.Inodes = false, 100 }, "docker.storageOpt"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Create(t.Context(), l.spec(c.change))
			if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), c.want) || errhint.Of(err) == "" {
				t.Errorf("%v (%s)", err, errhint.Of(err))
			}
		})
	}
	if _, err := l.Create(t.Context(), l.spec(func(s *sandbox.Spec) { s.Limits.IO.Weight = 5000 })); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("a weight that cannot be: %v", err)
	}
}

// A root with a size holds so much and so many files, keeps them over a stop,
// and leaves no device behind.
func TestStorageIsBounded(t *testing.T) {
	need.Root(t, "it mounts a file system")
	for _, user := range []string{"0:0", "1234:1234"} {
		t.Run(user, func(t *testing.T) {
			l := newSite(t)
			i := l.start(func(s *sandbox.Spec) {
				s.ReadOnlyRoot, s.User, s.Limits.Storage = false, user, sandbox.Storage{Size: 32 << 20, Inodes: 300}
			})
			l.sh(i, "echo kept >/kept")
			if out, code := l.try(i, "dd if=/dev/zero of=/full bs=1M count=64"); code == 0 || !strings.Contains(out, "No space") {
				t.Errorf("the root holds more than its size: %d: %s", code, out)
			}
			l.sh(i, "rm /full")
			if out, code := l.try(i, "mkdir /many; i=0; while [ $i -lt 1000 ]; do : >/many/$i || exit 1; i=$((i+1)); done"); code == 0 {
				t.Errorf("the root holds more files than it may: %s", out)
			}
			if err := i.Stop(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Runtime.(sandbox.Forker).Fork(t.Context(), i.Seen().Name, l.spec()); !errors.Is(err, sandbox.ErrUnsupported) {
				t.Errorf("a fork of it: %v", err)
			}
			if err := i.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := l.sh(i, "cat /kept"); got != "kept" {
				t.Errorf("after a stop: %q", got)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.noLoops()
		})
	}
}

// noLoops waits until no device shows a file of this site: the kernel lets go of
// one a moment after its last user.
func (l *site) noLoops() {
	l.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := ""
		shown, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
		for _, file := range shown {
			if text, _ := os.ReadFile(file); strings.Contains(string(text), l.state) {
				left = file
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s is left", left)
		}
	}
}

// An ordinary user to whom the controller was delegated limits disks too.
func TestUserDisksAreLimited(t *testing.T) {
	asSomeone(t, "TestDisksAreLimited", "^TestDisksAreLimited$", delegate(t, "blkio"))
}

// Without root, and without groups, both are refused with the remedy.
func TestUserDiskLimitsAreRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		asSomeone(t, "TestUserDiskLimitsAreRefused", "^TestUserDiskLimitsAreRefused$", nil)
		return
	}
	l := newSite(t)
	for field, change := range map[string]func(*sandbox.Spec){
		"docker.storageOpt":    func(s *sandbox.Spec) { s.ReadOnlyRoot, s.Limits.Storage.Size = false, 64<<20 },
		"docker.deviceReadBps": func(s *sandbox.Spec) { s.Limits.IO.ReadBps = 1 << 20 },
	} {
		_, err := l.Create(t.Context(), l.spec(change))
		if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), field) || !strings.Contains(errhint.Of(err), "root") {
			t.Errorf("%s: %v (%s)", field, err, errhint.Of(err))
		}
	}
}
