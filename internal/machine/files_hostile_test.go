package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/google/go-cmp/cmp"
)

// attempts are all operations on a path, each with the error that it gave.
func (w *workplace) attempts(files *guestfs.Files, path string) map[string]error {
	ctx := patience(w.T)
	return map[string]error{
		"read":        second(files.Read(ctx, path, nil)),
		"write":       second(files.Write(ctx, path, []byte("overwritten"), nil)),
		"exclusive":   second(files.Write(ctx, path, nil, &guestfs.WriteOptions{Exclusive: true})),
		"mkdir":       files.Mkdir(ctx, path, &guestfs.MkdirOptions{Parents: true}),
		"rename from": files.Rename(ctx, path, w.at("renamed"), nil),
		"rename to":   files.Rename(ctx, w.at("plain"), path, nil),
		"copy from":   second(files.Copy(ctx, path, w.at("copied"), &guestfs.CopyOptions{Recursive: true})),
		"copy to":     second(files.Copy(ctx, w.at("plain"), path, nil)),
		"list":        second(files.List(ctx, path, nil)),
		"search":      second(files.Search(ctx, path, &guestfs.SearchOptions{Pattern: "x"})),
		"watch":       second(files.Watch(ctx, path, nil)),
		"tar out":     second(files.ReadTar(ctx, path, io.Discard, nil)),
		"tar in":      second(files.WriteTar(ctx, path, archiveOf(w.T, file("f", 1)), nil)),
	}
}

func TestFilesRefuseByName(t *testing.T) {
	w := newWorkplace(t, `
mkdir $ROOT/../outside; echo secret > $ROOT/../outside/secret; chmod -R a+rwX $ROOT/../outside
ln -s $ROOT/../outside/secret $ROOT/link; ln -s ../outside $ROOT/dirlink; ln -s /proc/self/fd/1 $ROOT/magic
mkfifo $ROOT/fifo; mknod $ROOT/device c 1 3
echo x > $ROOT/one; ln $ROOT/one $ROOT/two
mkdir $ROOT/mnt; mount -t tmpfs tmpfs $ROOT/mnt; echo x > $ROOT/mnt/f; chmod 777 $ROOT/mnt
echo x > $ROOT/mounted; mount --bind $ROOT/../outside/secret $ROOT/mounted
echo x > $ROOT/plain
chmod a+rw $ROOT/fifo $ROOT/device $ROOT/one $ROOT/mounted $ROOT/plain; chown -h 65534 $ROOT/*`)
	sh(t, w.machine, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\""+w.at("socket")+"\")'")
	tests := map[string]error{
		"link": machine.ErrSymlink, "dirlink/secret": machine.ErrSymlink, "dirlink": machine.ErrSymlink, "magic": machine.ErrSymlink,
		"fifo": machine.ErrFIFO, "device": machine.ErrDevice, "socket": machine.ErrSocket, "two": machine.ErrHardLink,
		"mnt": machine.ErrMount, "mnt/f": machine.ErrMount, "mounted": machine.ErrMount,
	}
	before := w.names(".")
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			for name, err := range w.attempts(w.files, w.at(path)) {
				switch {
				case err == nil:
					t.Errorf("%s succeeded", name)
				case errors.Is(err, want):
				case name == "exclusive" && errors.Is(err, fs.ErrExist): // whatever it is
				case (name == "mkdir" || name == "list" || name == "watch" || name == "tar in") && errors.Is(err, machine.ErrNotDir):
				default:
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
		})
	}
	if got := sh(t, w.machine, "cat "+w.dir+"/../outside/*").out; got != "secret\n" {
		t.Errorf("outside: %q", got)
	}
	if got := w.names("."); !cmp.Equal(got, before) {
		t.Errorf("left behind: %s", cmp.Diff(before, got))
	}
	for _, path := range []string{"link", "dirlink", "fifo", "two"} { // but each can be removed itself
		_, err := w.files.Remove(patience(t), w.at(path), &guestfs.RemoveOptions{Recursive: true})
		check(t, err)
	}
	for _, path := range []string{"mnt", "mounted"} {
		_, err := w.files.Remove(patience(t), w.at(path), &guestfs.RemoveOptions{Recursive: true})
		wantErr(t, err, machine.ErrMount)
	}
	_, err := w.files.Remove(patience(t), w.at("dirlink/secret"), nil)
	wantErr(t, err, fs.ErrNotExist)
}

func TestFilesReadOnlyMount(t *testing.T) {
	w := newWorkplace(t, "echo x > $ROOT/f; mkdir $ROOT/d; chown 65534 $ROOT/*; mount --bind $ROOT $ROOT; mount -o remount,ro,bind $ROOT")
	ctx := patience(t)
	changes := map[string]error{
		"write":     second(w.files.Write(ctx, w.at("f"), nil, nil)),
		"create":    second(w.files.Write(ctx, w.at("g"), nil, nil)),
		"mkdir":     w.files.Mkdir(ctx, w.at("e"), nil),
		"mkdir all": w.files.Mkdir(ctx, w.at("e/f/g"), &guestfs.MkdirOptions{Parents: true}),
		"remove":    second(w.files.Remove(ctx, w.at("f"), nil)),
		"rmdir":     second(w.files.Remove(ctx, w.at("d"), &guestfs.RemoveOptions{Recursive: true})),
		"rename":    w.files.Rename(ctx, w.at("f"), w.at("g"), nil),
		"copy":      second(w.files.Copy(ctx, w.at("f"), w.at("g"), nil)),
		"tar":       second(w.files.WriteTar(ctx, w.dir, archiveOf(t, file("t", 1)), nil)),
	}
	for name, err := range changes {
		if !errors.Is(err, machine.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if content, err := w.files.Read(ctx, w.at("f"), nil); err != nil || string(content.Data) != "x\n" {
		t.Errorf("%v %v", content, err)
	}
}

func TestFilesFullDisk(t *testing.T) {
	w := newWorkplace(t, "mount -t tmpfs -o size=1m,nr_inodes=20 tmpfs $ROOT; chown 65534 $ROOT")
	ctx := patience(t)
	_, err := w.files.Write(ctx, w.at("f"), []byte("old"), nil)
	check(t, err)
	big := make([]byte, 4<<20)
	_, err = w.files.Write(ctx, w.at("f"), big, nil)
	wantErr(t, err, machine.ErrNoSpace)
	_, err = w.files.WriteFrom(ctx, w.at("f"), endless{}, nil)
	wantErr(t, err, machine.ErrNoSpace)
	_, err = w.files.WriteTar(ctx, w.dir, archiveOf(t, file("big", 4<<20)), nil)
	wantErr(t, err, machine.ErrNoSpace)
	_, err = w.files.Write(ctx, w.at("g"), big[:700<<10], nil)
	check(t, err)
	_, err = w.files.Copy(ctx, w.at("g"), w.at("h"), nil)
	wantErr(t, err, machine.ErrNoSpace)
	for i := range 30 { // no inodes left
		err = w.files.Mkdir(ctx, w.at(fmt.Sprint("d", i)), nil)
	}
	wantErr(t, err, machine.ErrNoSpace)
	content, err := w.files.Read(ctx, w.at("f"), nil)
	check(t, err)
	listing, err := w.files.List(ctx, w.dir, nil)
	check(t, err)
	for _, e := range listing.Entries {
		if strings.HasPrefix(e.Path, ".atoll") || e.Path == "h" || e.Path == "big" {
			t.Errorf("left behind: %s", e.Path)
		}
	}
	if string(content.Data) != "old" {
		t.Errorf("the old content is gone: %q", content.Data)
	}
}

// endless is content without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestFilesUnreadable(t *testing.T) {
	w := newWorkplace(t, "echo secret > $ROOT/f; chmod 600 $ROOT/f; mkdir -m 700 $ROOT/d; echo x > $ROOT/d/g; mkdir -m 711 $ROOT/e; mkdir -m 755 $ROOT/r; echo x > $ROOT/r/h")
	ctx := patience(t)
	refusals := map[string]error{
		"read":             second(w.files.Read(ctx, w.at("f"), nil)),
		"list":             second(w.files.List(ctx, w.at("d"), nil)),
		"below":            second(w.files.Stat(ctx, w.at("d/g"))),
		"list executable":  second(w.files.List(ctx, w.at("e"), nil)),
		"write":            second(w.files.Write(ctx, w.at("f"), nil, nil)),
		"create":           second(w.files.Write(ctx, w.at("r/new"), nil, nil)),
		"remove":           second(w.files.Remove(ctx, w.at("r/h"), nil)),
		"remove recursive": second(w.files.Remove(ctx, w.at("r"), &guestfs.RemoveOptions{Recursive: true})),
		"tar":              second(w.files.ReadTar(ctx, w.dir, io.Discard, nil)),
	}
	for name, err := range refusals {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := w.files.Stat(ctx, w.at("f")); err != nil || info.Size != 7 {
		t.Errorf("%+v %v", info, err)
	}
	found, err := w.files.Search(ctx, w.dir, &guestfs.SearchOptions{Pattern: "."})
	check(t, err)
	if len(found.Matches) != 1 || found.Totals.Refused != 3 {
		t.Errorf("%+v", found)
	}
}

// TestFilesThatShrink truncates a file again and again while it is read, over
// direct wires and over streams.
func TestFilesThatShrink(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("f", strings.Repeat("x", 6<<20))
	stop := make(chan struct{})
	var shrinking sync.WaitGroup
	shrinking.Go(func() {
		for size := int64(0); ; size = (size + 1_000_003) % (6 << 20) {
			select {
			case <-stop:
				return
			default:
				_ = os.Truncate(w.at("f"), size)
				_ = os.Truncate(w.at("f"), 6<<20)
			}
		}
	})
	var changed atomic.Int64
	var reading sync.WaitGroup
	for range 12 {
		reading.Go(func() {
			for range 15 {
				switch _, err := w.files.Read(patience(t), w.at("f"), nil); {
				case errors.Is(err, machine.ErrChanged):
					changed.Add(1)
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	reading.Wait()
	close(stop)
	shrinking.Wait()
	t.Logf("%d of 180 reads saw the file shrink", changed.Load())
	check(t, w.machine.Ping(patience(t)))
}

// The attackers swap what the host works on, as fast as they can. In their
// scripts $ROOT is the root; outside it lies what must not be reached.
var attackers = map[string]string{
	"directory and link": `
while True:
    os.rename("dir", "aside"); os.symlink(outside, "dir")
    os.unlink("dir"); os.rename("aside", "dir")`,
	"exchange": `
import ctypes
libc = ctypes.CDLL(None)
os.symlink(outside, "other")
while True: libc.syscall(316, -100, b"dir", -100, b"other", 2)`,
	"file and link": `
os.symlink(outside + "/f", "dir/l")
open("dir/r", "w").write("inside")
while True:
    for name in ("l", "r"):
        os.link("dir/" + name, "dir/x", follow_symlinks=False); os.rename("dir/x", "dir/f")
        os.unlink("dir/" + name); os.rename("dir/f", "dir/" + name)`,
	"file and pipe": `
while True:
    os.mkfifo("dir/p"); os.rename("dir/p", "dir/f")
    open("dir/r", "w").write("inside"); os.rename("dir/r", "dir/f")`,
	"magic links": `
targets = ["/proc/1/environ", "/proc/self/environ", "/proc/self/mem", "/proc/1/root" + outside + "/f", "/proc/self/cwd/../outside/f", "/proc/1/fd/0"]
while True:
    for t in targets:
        os.symlink(t, "dir/p"); os.rename("dir/p", "dir/f")
    open("dir/r", "w").write("inside"); os.rename("dir/r", "dir/f")`,
	"hard links": `
open("dir/base", "w").write("inside")
while True:
    os.link("dir/base", "dir/x"); os.rename("dir/x", "dir/y"); os.rename("dir/y", "dir/f"); os.unlink("dir/f")
    open("dir/r", "w").write("inside"); os.rename("dir/r", "dir/f")`,
	"drafts": `
while True:
    for name in os.listdir("dir"):
        if name.startswith(".atoll"):
            try: os.unlink("dir/" + name); os.symlink(outside + "/f", "dir/" + name)
            except OSError: pass`,
	"moving up and down": `
os.mkdir("a"); os.mkdir("a/b")
while True:
    os.rename("dir", "a/b/dir"); os.rename("a/b/dir", "dir")`,
}

// TestFilesRacingAttackers does everything with files while each attacker is at
// work. Nothing outside may be read or changed, and nothing may hang.
func TestFilesRacingAttackers(t *testing.T) {
	for name, attack := range attackers {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t, "mkdir $ROOT/../outside; printf outside > $ROOT/../outside/f; chmod -R 777 $ROOT/../outside; mkdir $ROOT/dir; printf inside > $ROOT/dir/f; chmod -R a+rwX $ROOT; chown -R 65534 $ROOT")
			program := fmt.Sprintf("import os\nos.chdir(%q)\noutside = %q\n", w.dir, w.dir+"/../outside") +
				"while True:\n  try:" + strings.ReplaceAll(attack, "\n", "\n    ") + "\n  except OSError: pass\n"
			id, err := w.machine.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", program}})
			check(t, err)
			w.work(time.Second)
			check(t, w.machine.End(patience(t), id, time.Millisecond))
			w.unharmed()
		})
	}
}

// TestFilesRacingMounts has root mount and unmount over what the host works on.
func TestFilesRacingMounts(t *testing.T) {
	w := newWorkplace(t, `
mkdir $ROOT/../outside; printf outside > $ROOT/../outside/f; chmod -R 777 $ROOT/../outside
mkdir $ROOT/dir; printf inside > $ROOT/dir/f; chmod -R a+rwX $ROOT; chown -R 65534 $ROOT
(while :; do mount --bind $ROOT/../outside $ROOT/dir; umount $ROOT/dir; mount --bind $ROOT/../outside/f $ROOT/dir/f; umount $ROOT/dir/f; done >/dev/null 2>&1) &`)
	w.work(2 * time.Second)
	w.unharmed()
}

// unharmed checks that nothing outside was changed.
func (w *workplace) unharmed() {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(w.dir), "outside"))
	check(w.T, err)
	content, err := os.ReadFile(filepath.Join(filepath.Dir(w.dir), "outside", "f"))
	check(w.T, err)
	if len(entries) != 1 || string(content) != "outside" {
		w.Errorf("outside: %v, %q", entries, content)
	}
	check(w.T, w.machine.Ping(patience(w.T)))
}

// work does everything with files for a while. Errors are expected, but none
// that no attacker can explain.
func (w *workplace) work(d time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	var read, wrote, done atomic.Int64
	inside := func(content []byte) {
		if strings.Contains(string(content), "outside") {
			w.Errorf("read from outside: %q", content)
		}
	}
	operations := []func() error{
		func() error {
			content, err := w.files.Read(w.Context(), w.at("dir/f"), nil)
			if err == nil {
				read.Add(1)
				inside(content.Data)
			}
			return err
		},
		func() error {
			_, err := w.files.Write(w.Context(), w.at("dir/f"), []byte("inside"), nil)
			if err == nil {
				wrote.Add(1)
			}
			return err
		},
		func() error { return second(w.files.Stat(w.Context(), w.at("dir/f"))) },
		func() error {
			return second(w.files.Write(w.Context(), w.at("dir/new/f"), nil, &guestfs.WriteOptions{MkdirAll: true}))
		},
		func() error {
			return second(w.files.Remove(w.Context(), w.at("dir/new"), &guestfs.RemoveOptions{Recursive: true}))
		},
		func() error { return w.files.Rename(w.Context(), w.at("dir/f"), w.at("dir/g"), nil) },
		func() error { return w.files.Rename(w.Context(), w.at("dir/g"), w.at("dir/f"), nil) },
		func() error { return second(w.files.Copy(w.Context(), w.at("dir/f"), w.at("dir/h"), nil)) },
		func() error { return second(w.files.Remove(w.Context(), w.at("dir/h"), nil)) },
		func() error { return second(w.files.List(w.Context(), w.at("dir"), nil)) },
		func() error {
			result, err := w.files.Search(w.Context(), w.dir, &guestfs.SearchOptions{Pattern: "side"})
			if err == nil {
				for _, m := range result.Matches {
					inside([]byte(m.Text))
				}
			}
			return err
		},
		func() error {
			var archive bytes.Buffer
			_, err := w.files.ReadTar(w.Context(), w.dir, &archive, &guestfs.TarOptions{SkipRefused: true})
			inside(archive.Bytes())
			return err
		},
		func() error {
			return second(w.files.WriteTar(w.Context(), w.at("dir"), archiveOf(w.T, file("f", 6)), nil))
		},
	}
	results := make(chan error)
	for _, operation := range operations {
		go func() {
			for ctx.Err() == nil {
				if err := operation(); err != nil && !explained(err) {
					results <- err
					return
				}
				done.Add(1)
			}
			results <- nil
		}()
	}
	for range operations {
		if err := <-results; err != nil {
			w.Error(err)
		}
	}
	w.Logf("%d operations, %d reads and %d writes succeeded", done.Load(), read.Load(), wrote.Load())
}

// explained reports whether an attacker can bring an error about.
func explained(err error) bool {
	for _, kind := range []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, machine.ErrSymlink, machine.ErrHardLink, machine.ErrFIFO, machine.ErrMount, machine.ErrIsDir,
		machine.ErrNotDir, machine.ErrNotEmpty, machine.ErrChanged, machine.ErrSocket, machine.ErrTooLarge, machine.ErrTimeout,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
