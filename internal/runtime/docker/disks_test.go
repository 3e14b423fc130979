package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// Limits of disks reach the kernel, for the disks that the workspace and the
// engine's files are on.
func TestDisksAreLimited(t *testing.T) {
	for name, engine := range map[Flavor]func(testing.TB) string{Docker: enginetest.Docker, Podman: enginetest.Podman} {
		t.Run(string(name), func(t *testing.T) {
			l := newLab(t, engine(t), name)
			work := t.TempDir()
			i := l.start(t, func(s *sandbox.Spec) {
				s.Mounts = []sandbox.Mount{{Source: work, Target: "/workspace", Kind: sandbox.MountWorkspace}}
				s.Limits.IO = sandbox.IO{ReadBps: 1 << 20, WriteBps: 2 << 20, ReadIOps: 300, WriteIOps: 400}
			})
			disk, err := blockdev.Finder{}.Of(work)
			if err != nil {
				t.Fatal(err)
			}
			found, err := l.inspect(t.Context(), i.Seen().ID)
			if err != nil {
				t.Fatal(err)
			}
			kept := readGroup(t, found.State.Pid)
			for _, want := range []string{"1048576", "2097152", "300", "400"} {
				if !strings.Contains(kept, want) || !strings.Contains(kept, disk.String()) {
					t.Errorf("no %s of %s in %q", want, disk, kept)
				}
			}
		})
	}
}

// readGroup reads what the kernel limits a process to.
func readGroup(t *testing.T, pid int) string {
	t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		files, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", fields[1], fields[2], "blkio.throttle.*_device"))
		for _, file := range append(files, filepath.Join("/sys/fs/cgroup", fields[2], "io.max")) {
			text, _ := os.ReadFile(file)
			kept.Write(text)
		}
	}
	return kept.String()
}

// What an engine would take and not keep is refused by name.
func TestDiskLimitsAreRefused(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
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
		"a size of the root on ext4": {func(s *sandbox.Spec) { s.ReadOnlyRoot, s.Limits.Storage.Size = false, 64<<20 }, "docker.storageOpt"},
		"a number of files": {func(s *sandbox.Spec) {
			s.ReadOnlyRoot, s.Limits.Storage = false, sandbox.Storage{Size: 64 << 20, Inodes: 100}
		}, "docker.storageOpt"},
	} {
		t.Run(name, func(t *testing.T) {
			if gaps := l.Check(t.Context(), l.spec(c.change)); len(gaps) != 1 || !strings.HasPrefix(gaps[0].Field, c.want) || gaps[0].Remedy == "" {
				t.Errorf("gaps %+v", gaps)
			}
			_, err := l.Create(t.Context(), l.spec(c.change))
			if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), c.want) || errhint.Of(err) == "" {
				t.Errorf("%v (%s)", err, errhint.Of(err))
			}
		})
	}
}
