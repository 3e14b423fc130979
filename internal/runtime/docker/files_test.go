package docker

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
)

// withGuest has the real guest in a lab.
func withGuest(t *testing.T) func(*Options) {
	return func(o *Options) {
		o.Guest = func(string) ([]byte, error) { return os.ReadFile(guestbuild.Build(t)) }
	}
}

// machineIn starts a sandbox of the usual image without a network, whose
// /workspace is dir, and returns the machine in it.
func (l *lab) machineIn(t *testing.T, dir string) *machine.Machine {
	t.Helper()
	i := l.start(t, func(s *sandbox.Spec) {
		s.Image, s.Workdir = enginetest.Image, "/workspace"
		s.Mounts = []sandbox.Mount{{Source: dir, Target: "/workspace", Kind: sandbox.MountWorkspace}}
	})
	m := machine.New(i.Dial, nil)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// workspaceDir is a directory of the sandbox's user.
func workspaceDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, 1234, 1234)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// onEachTransport runs a test with the real guest on both engines, over sockets
// and through the engine.
func onEachTransport(t *testing.T, test func(*testing.T, *lab)) {
	for _, transport := range []Transport{TransportSocket, TransportAttach} {
		change := func(o *Options) { o.Transport = transport }
		t.Run("docker/"+string(transport), func(t *testing.T) {
			test(t, newLab(t, enginetest.Docker(t), Docker, withGuest(t), change))
		})
		t.Run("podman/"+string(transport), func(t *testing.T) {
			test(t, newLab(t, enginetest.Podman(t), Podman, withGuest(t), change))
		})
	}
}

// TestFilesInASandbox does everything with files under the limits of a real
// sandbox: its filter of system calls, its user, its mounts.
func TestFilesInASandbox(t *testing.T) {
	onEachTransport(t, func(t *testing.T, l *lab) {
		dir := workspaceDir(t)
		m := l.machineIn(t, dir)
		files, err := guestfs.New(m, []guestfs.Root{{Path: "/workspace"}, {Path: "/tmp"}, {Path: "/"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		ok := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		content := []byte(strings.Repeat("needle in a haystack\n", 100_000))
		written, err := files.Write(ctx, "/workspace/a/b/c.txt", content, &guestfs.WriteOptions{MkdirAll: true, Sync: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a/b/c.txt")); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes on the host, %v", len(got), err)
		}
		got, err := files.Read(ctx, "/workspace/a/b/c.txt", nil)
		ok("read", err)
		if err == nil && (!bytes.Equal(got.Data, content) || got.Info.Version != written.Info.Version) {
			t.Errorf("%d bytes, version %q", len(got.Data), got.Info.Version)
		}
		_, err = files.Copy(ctx, "/workspace/a", "/workspace/copy", &guestfs.CopyOptions{Recursive: true})
		ok("copy", err)
		_, err = files.Copy(ctx, "/workspace/a/b/c.txt", "/tmp/c.txt", nil)
		ok("copy to another file system", err)
		refused("rename to another file system", files.Rename(ctx, "/workspace/a/b/c.txt", "/tmp/d.txt", nil), machine.ErrMount)
		ok("rename", files.Rename(ctx, "/workspace/a/b/c.txt", "/workspace/d.txt", &guestfs.RenameOptions{NoReplace: true}))
		found, err := files.Search(ctx, "/workspace", &guestfs.SearchOptions{Pattern: "hay", MaxPerFile: 1})
		ok("search", err)
		if err == nil && len(found.Matches) != 2 {
			t.Errorf("%d matches", len(found.Matches))
		}
		watch, err := files.Watch(ctx, "/workspace", &guestfs.WatchOptions{Recursive: true})
		ok("watch", err)
		if err == nil {
			ok("touch", os.WriteFile(filepath.Join(dir, "copy/seen"), nil, 0o644))
			events, err := watch.Next()
			ok("event", err)
			if len(events) == 0 || events[0].Path != "copy/seen" {
				t.Errorf("%+v", events)
			}
			_ = watch.Close()
		}
		var archive bytes.Buffer
		_, err = files.ReadTar(ctx, "/workspace", &archive, nil)
		ok("tar out", err)
		_, err = files.WriteTar(ctx, "/tmp/unpacked", &archive, &guestfs.TarOptions{MkdirAll: true})
		ok("tar in", err)
		_, err = files.Remove(ctx, "/workspace/copy", &guestfs.RemoveOptions{Recursive: true})
		ok("remove", err)

		_, err = files.Read(ctx, "/etc/hostname", nil) // mounted by the engine
		refused("a mount", err, machine.ErrMount)
		_, err = files.Read(ctx, "/etc/debian_version", nil)
		ok("the image", err)
		_, err = files.Write(ctx, "/etc/new", nil, nil)
		if !errors.Is(err, machine.ErrReadOnly) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("write to the image: %v", err)
		}
		_, err = files.List(ctx, "/proc", nil)
		refused("the kernel", err, machine.ErrMount)
		ok("symlink", os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
		_, err = files.Read(ctx, "/workspace/link", nil)
		refused("a link", err, machine.ErrSymlink)
		if left, _ := filepath.Glob(filepath.Join(dir, ".atoll*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// TestFilesWhileTheSandboxIsPaused: nothing hangs for longer than its context.
func TestFilesWhileTheSandboxIsPaused(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker, withGuest(t))
	i := l.start(t, func(s *sandbox.Spec) { s.Image = enginetest.Image })
	m := machine.New(i.Dial, nil)
	t.Cleanup(func() { _ = m.Close() })
	files, err := guestfs.New(m, []guestfs.Root{{Path: "/tmp"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write(t.Context(), "/tmp/f", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if err := i.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextFor(t, 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := files.Read(ctx, "/tmp/f", nil); err == nil {
		t.Error("a paused sandbox answered")
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if err := i.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := files.Read(t.Context(), "/tmp/f", nil); err != nil || string(got.Data) != "x" {
		t.Errorf("after the pause: %v %v", got, err)
	}
}
