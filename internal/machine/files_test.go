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
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
	"github.com/google/go-cmp/cmp"
)

// workplace is a guest with a root for files, seen from both sides.
type workplace struct {
	*testing.T
	guest   *machinetest.Guest
	machine *machine.Machine
	files   *guestfs.Files
	dir     string // the root
}

const guestUser = 65534

// newWorkplace starts a guest, with prepare run as root before it, in which
// $ROOT is the root.
func newWorkplace(t *testing.T, prepare string) *workplace {
	t.Helper()
	need.Root(t, "it starts a guest with other users' files")
	dir := t.TempDir()
	otheruser.Open(t, dir)
	root := filepath.Join(dir, "root")
	check(t, os.Mkdir(root, 0o755))
	check(t, os.Chown(root, guestUser, guestUser))
	g := machinetest.Start(t, &machinetest.Options{Prepare: "ROOT=" + root + "\n" + prepare})
	w := &workplace{T: t, guest: g, machine: g.Machine(t, nil), dir: root}
	w.files = w.roots(guestfs.Root{Path: root})
	return w
}

func (w *workplace) roots(roots ...guestfs.Root) *guestfs.Files {
	w.Helper()
	files, err := guestfs.New(w.machine, roots)
	check(w.T, err)
	return files
}

// at is a path in the root.
func (w *workplace) at(name string) string { return filepath.Join(w.dir, name) }

// put makes a file on the host's side, as the guest's user's.
func (w *workplace) put(name, content string) {
	w.Helper()
	check(w.T, os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
	check(w.T, os.WriteFile(w.at(name), []byte(content), 0o644))
	w.own(name)
}

// own gives a path, and all below the root that leads there, to the guest.
func (w *workplace) own(name string) {
	w.Helper()
	for at := filepath.Clean(name); at != "."; at = filepath.Dir(at) {
		check(w.T, os.Lchown(w.at(at), guestUser, guestUser))
	}
}

// get reads a file on the host's side.
func (w *workplace) get(name string) string {
	w.Helper()
	content, err := os.ReadFile(w.at(name))
	check(w.T, err)
	return string(content)
}

// names lists a directory of the host's side: no draft may stay.
func (w *workplace) names(name string) []string {
	w.Helper()
	entries, err := os.ReadDir(w.at(name))
	check(w.T, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr fails the test unless err is of a kind.
func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestFilesReadAndWrite(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	result, err := w.files.Write(ctx, w.at("a.txt"), []byte("hello"), nil)
	check(t, err)
	if !result.Created || result.Info.Size != 5 || result.Info.Mode != 0o644 || result.Info.UID != guestUser || result.Info.Version == "" {
		t.Errorf("%+v", result)
	}
	content, err := w.files.Read(ctx, w.at("a.txt"), nil)
	check(t, err)
	if string(content.Data) != "hello" || content.More || content.Info.Version != result.Info.Version {
		t.Errorf("%q %+v, written as %+v", content.Data, content, result.Info)
	}
	result, err = w.files.Write(ctx, w.at("a.txt"), []byte("hello again"), nil)
	check(t, err)
	if result.Created {
		t.Error("it was there already")
	}
	if got := w.names("."); !cmp.Equal(got, []string{"a.txt"}) {
		t.Errorf("left behind: %q", got)
	}
}

func TestFilesRanges(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("f", "0123456789")
	tests := []struct {
		name    string
		options *guestfs.ReadOptions
		want    string
		offset  int64
		more    bool
	}{
		{"all", nil, "0123456789", 0, false},
		{"from", &guestfs.ReadOptions{Offset: 4}, "456789", 4, false},
		{"first", &guestfs.ReadOptions{Limit: 3}, "012", 0, true},
		{"middle", &guestfs.ReadOptions{Offset: 2, Limit: 3}, "234", 2, true},
		{"exactly to the end", &guestfs.ReadOptions{Offset: 7, Limit: 3}, "789", 7, false},
		{"over the end", &guestfs.ReadOptions{Offset: 8, Limit: 100}, "89", 8, false},
		{"behind the end", &guestfs.ReadOptions{Offset: 100}, "", 10, false},
		{"last", &guestfs.ReadOptions{Offset: -3}, "789", 7, false},
		{"last but one", &guestfs.ReadOptions{Offset: -3, Limit: 2}, "78", 7, true},
		{"more than all from the end", &guestfs.ReadOptions{Offset: -100, Limit: 4}, "0123", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.files.Read(patience(t), w.at("f"), tt.options)
			check(t, err)
			if string(got.Data) != tt.want || got.Offset != tt.offset || got.More != tt.more {
				t.Errorf("%q at %d, more %v", got.Data, got.Offset, got.More)
			}
		})
	}
}

func TestFilesOfAllSizes(t *testing.T) {
	w := newWorkplace(t, "")
	for _, size := range []int{0, 1, 4 << 10, 32 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1<<20 + 7, 16 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			data := randomBytes(size)
			_, err := w.files.Write(patience(t), w.at("f"), data, &guestfs.WriteOptions{Sync: size < 1<<20})
			check(t, err)
			if w.get("f") != string(data) {
				t.Fatal("written otherwise")
			}
			got, err := w.files.Read(patience(t), w.at("f"), nil)
			check(t, err)
			if !bytes.Equal(got.Data, data) {
				t.Errorf("%d bytes came back, and not the same", len(got.Data))
			}
			_, err = w.files.WriteFrom(patience(t), w.at("g"), bytes.NewReader(data), nil)
			check(t, err)
			r, err := w.files.Open(patience(t), w.at("g"), nil)
			check(t, err)
			defer r.Close()
			streamed, err := io.ReadAll(r)
			check(t, err)
			if !bytes.Equal(streamed, data) || r.Size != int64(size) {
				t.Errorf("%d bytes came back, and not the same", len(streamed))
			}
		})
	}
}

// randomBytes are the same in every run.
func randomBytes(n int) []byte {
	data := make([]byte, n)
	state := uint64(88172645463325252)
	for i := range data {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		data[i] = byte(state)
	}
	return data
}

func TestFilesSparseGigabyte(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("sparse", "")
	check(t, os.Truncate(w.at("sparse"), 1<<30))
	got, err := w.files.Read(patience(t), w.at("sparse"), &guestfs.ReadOptions{Offset: -10})
	check(t, err)
	if len(got.Data) != 10 {
		t.Errorf("%d bytes", len(got.Data))
	}
	got, err = w.files.Read(patience(t), w.at("sparse"), nil)
	check(t, err)
	if len(got.Data) != guestfs.MaxRead || !got.More {
		t.Errorf("%d bytes, more %v", len(got.Data), got.More)
	}
	got = nil
	r, err := w.files.Open(patience(t), w.at("sparse"), nil)
	check(t, err)
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	if n != 1<<30 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	_, err = w.files.Copy(patience(t), w.at("sparse"), w.at("copy"), nil)
	check(t, err)
	info, err := os.Stat(w.at("copy"))
	check(t, err)
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != 1<<30 || blocks > 1000 {
		t.Errorf("copy of %d bytes in %d blocks", info.Size(), blocks)
	}
}

func TestFilesWriteOptions(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	w.put("script", "old")
	check(t, os.Chmod(w.at("script"), 0o750))
	_, err := w.files.Write(ctx, w.at("script"), []byte("new"), nil)
	check(t, err)
	if info, _ := os.Stat(w.at("script")); info.Mode().Perm() != 0o750 || w.get("script") != "new" {
		t.Errorf("%v %q", info.Mode(), w.get("script"))
	}
	_, err = w.files.Write(ctx, w.at("script"), nil, &guestfs.WriteOptions{Mode: 0o600})
	check(t, err)
	if info, _ := os.Stat(w.at("script")); info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%v %d", info.Mode(), info.Size())
	}
	_, err = w.files.Write(ctx, w.at("script"), nil, &guestfs.WriteOptions{Mode: 0o4755 | fs.ModeSetuid})
	wantErr(t, err, machine.ErrInvalid)

	_, err = w.files.Write(ctx, w.at("script"), []byte("x"), &guestfs.WriteOptions{Exclusive: true})
	wantErr(t, err, fs.ErrExist)
	result, err := w.files.Write(ctx, w.at("fresh"), []byte("x"), &guestfs.WriteOptions{Exclusive: true, Mode: 0o755})
	check(t, err)
	if !result.Created || result.Info.Mode != 0o755 {
		t.Errorf("%+v", result)
	}
	_, err = w.files.Write(ctx, w.at("no/such/dir/f"), []byte("x"), nil)
	wantErr(t, err, fs.ErrNotExist)
	_, err = w.files.Write(ctx, w.at("new/deep/dir/f"), []byte("deep"), &guestfs.WriteOptions{MkdirAll: true, Sync: true})
	check(t, err)
	if w.get("new/deep/dir/f") != "deep" {
		t.Error("not there")
	}
	_, err = w.files.Write(ctx, w.at("script/f"), []byte("x"), &guestfs.WriteOptions{MkdirAll: true})
	wantErr(t, err, machine.ErrNotDir)
	check(t, os.Chmod(w.at("fresh"), 0o444))
	_, err = w.files.Write(ctx, w.at("fresh"), []byte("y"), nil)
	wantErr(t, err, fs.ErrPermission)
	if got := w.names("."); !cmp.Equal(got, []string{"fresh", "new", "script"}) {
		t.Errorf("left behind: %q", got)
	}
}

func TestFilesVersions(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	written, err := w.files.Write(ctx, w.at("f"), []byte("one"), nil)
	check(t, err)
	stat, err := w.files.Stat(ctx, w.at("f"))
	check(t, err)
	if stat.Version != written.Info.Version {
		t.Errorf("stat %q, write %q", stat.Version, written.Info.Version)
	}
	second, err := w.files.Write(ctx, w.at("f"), []byte("two"), &guestfs.WriteOptions{IfVersion: written.Info.Version})
	check(t, err)
	for name, change := range map[string]func(){
		"other content of the same length": func() { check(t, os.WriteFile(w.at("f"), []byte("owt"), 0o644)) },
		"longer":                           func() { check(t, os.WriteFile(w.at("f"), []byte("two and more"), 0o644)) },
		"another file":                     func() { w.put("other", "two"); check(t, os.Rename(w.at("other"), w.at("f"))) },
		"gone":                             func() { check(t, os.Remove(w.at("f"))) },
	} {
		t.Run(name, func(t *testing.T) {
			now, err := w.files.Write(ctx, w.at("f"), []byte("two"), nil)
			check(t, err)
			change()
			_, err = w.files.Write(ctx, w.at("f"), []byte("three"), &guestfs.WriteOptions{IfVersion: now.Info.Version})
			wantErr(t, err, machine.ErrChanged)
			_, err = w.files.Remove(ctx, w.at("f"), &guestfs.RemoveOptions{IfVersion: now.Info.Version})
			if !errors.Is(err, machine.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			err = w.files.Rename(ctx, w.at("f"), w.at("g"), &guestfs.RenameOptions{IfVersion: now.Info.Version})
			if !errors.Is(err, machine.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	_, err = w.files.Write(ctx, w.at("f"), []byte("x"), &guestfs.WriteOptions{IfVersion: second.Info.Version})
	wantErr(t, err, machine.ErrChanged)
	_, err = w.files.Write(ctx, w.at("f"), []byte("x"), &guestfs.WriteOptions{IfVersion: "nonsense"})
	wantErr(t, err, machine.ErrChanged)
}

// TestFilesVersionsOfQuickChanges changes a file as fast as it can, without
// changing its length: times alone do not tell the versions apart everywhere.
func TestFilesVersionsOfQuickChanges(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	w.put("f", "aaaa")
	for i := range 300 {
		check(t, os.WriteFile(w.at("f"), fmt.Appendf(nil, "%04d", i), 0o644))
		read, err := w.files.Read(ctx, w.at("f"), nil)
		check(t, err)
		check(t, os.WriteFile(w.at("f"), fmt.Appendf(nil, "%04d", i+5000), 0o644))
		_, err = w.files.Write(ctx, w.at("f"), []byte("mine"), &guestfs.WriteOptions{IfVersion: read.Info.Version})
		if !errors.Is(err, machine.ErrChanged) {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

func TestFilesNames(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	check(t, w.files.Mkdir(ctx, w.at("d"), nil))
	wantErr(t, w.files.Mkdir(ctx, w.at("d"), nil), fs.ErrExist)
	check(t, w.files.Mkdir(ctx, w.at("d"), &guestfs.MkdirOptions{Parents: true}))
	wantErr(t, w.files.Mkdir(ctx, w.at("x/y"), nil), fs.ErrNotExist)
	check(t, w.files.Mkdir(ctx, w.at("x/y/z"), &guestfs.MkdirOptions{Parents: true, Mode: 0o700}))
	check(t, w.files.Mkdir(ctx, w.dir, &guestfs.MkdirOptions{Parents: true}))
	info, err := w.files.Stat(ctx, w.at("x/y/z"))
	check(t, err)
	if info.Kind != guestfs.KindDir || info.Mode != 0o700 || info.Version != "" {
		t.Errorf("%+v", info)
	}
	w.put("d/f", "content")
	check(t, w.files.Rename(ctx, w.at("d/f"), w.at("x/g"), nil))
	w.put("d/f", "other")
	wantErr(t, w.files.Rename(ctx, w.at("d/f"), w.at("x/g"), &guestfs.RenameOptions{NoReplace: true}), fs.ErrExist)
	check(t, w.files.Rename(ctx, w.at("d/f"), w.at("x/g"), nil))
	if w.get("x/g") != "other" {
		t.Error("not replaced")
	}
	wantErr(t, w.files.Rename(ctx, w.at("x"), w.at("x/y/self"), nil), machine.ErrInvalid)
	wantErr(t, w.files.Rename(ctx, w.at("missing"), w.at("m"), nil), fs.ErrNotExist)
	check(t, w.files.Rename(ctx, w.at("x"), w.at("deep/er/x"), &guestfs.RenameOptions{MkdirAll: true}))

	_, err = w.files.Remove(ctx, w.at("deep"), nil)
	wantErr(t, err, machine.ErrNotEmpty)
	totals, err := w.files.Remove(ctx, w.at("deep"), &guestfs.RemoveOptions{Recursive: true})
	check(t, err)
	if totals.Files != 1 || totals.Dirs != 5 {
		t.Errorf("%+v", totals)
	}
	_, err = w.files.Remove(ctx, w.at("deep"), nil)
	wantErr(t, err, fs.ErrNotExist)
	_, err = w.files.Remove(ctx, w.at("deep"), &guestfs.RemoveOptions{Missing: true})
	check(t, err)
	_, err = w.files.Remove(ctx, w.dir, &guestfs.RemoveOptions{Recursive: true})
	wantErr(t, err, machine.ErrInvalid)
	if got := w.names("."); !cmp.Equal(got, []string{"d"}) {
		t.Errorf("left: %q", got)
	}
}

func TestFilesCopy(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	w.put("src/a", "aaa")
	w.put("src/sub/b", strings.Repeat("b", 100_000))
	check(t, os.Chmod(w.at("src/a"), 0o640))
	totals, err := w.files.Copy(ctx, w.at("src/a"), w.at("new/a"), &guestfs.CopyOptions{MkdirAll: true})
	check(t, err)
	if info, _ := os.Stat(w.at("new/a")); info.Mode().Perm() != 0o640 || totals.Bytes != 3 {
		t.Errorf("%v %+v", info.Mode(), totals)
	}
	_, err = w.files.Copy(ctx, w.at("src/a"), w.at("new/a"), &guestfs.CopyOptions{NoReplace: true})
	wantErr(t, err, fs.ErrExist)
	_, err = w.files.Copy(ctx, w.at("src"), w.at("dst"), nil)
	wantErr(t, err, machine.ErrIsDir)
	_, err = w.files.Copy(ctx, w.at("src"), w.at("src/sub/again"), &guestfs.CopyOptions{Recursive: true})
	wantErr(t, err, machine.ErrInvalid)
	totals, err = w.files.Copy(ctx, w.at("src"), w.at("dst"), &guestfs.CopyOptions{Recursive: true})
	check(t, err)
	if totals.Files != 2 || totals.Dirs != 2 || w.get("dst/sub/b") != w.get("src/sub/b") {
		t.Errorf("%+v", totals)
	}
	check(t, os.Symlink("/etc/passwd", w.at("src/link")))
	_, err = w.files.Copy(ctx, w.at("src"), w.at("dst2"), &guestfs.CopyOptions{Recursive: true})
	wantErr(t, err, machine.ErrSymlink)
	_, err = w.files.Copy(ctx, w.at("dst"), w.at("dst3"), &guestfs.CopyOptions{Recursive: true, Limits: guestfs.ScanLimits{Bytes: 1000}})
	wantErr(t, err, machine.ErrTooLarge)
}

func TestFilesOutside(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	for _, path := range []string{"/etc/passwd", w.dir + "/../x", w.dir + "-beside/x", filepath.Dir(w.dir), "/"} {
		_, err := w.files.Stat(ctx, path)
		wantErr(t, err, machine.ErrOutside)
		_, err = w.files.Write(ctx, path, nil, nil)
		wantErr(t, err, machine.ErrOutside)
		wantErr(t, w.files.Rename(ctx, w.at("f"), path, nil), machine.ErrOutside)
	}
	for _, path := range []string{"", "relative", "./x", w.dir + "/a\x00b", w.dir + strings.Repeat("/x", 2100)} {
		_, err := w.files.Stat(ctx, path)
		wantErr(t, err, machine.ErrInvalid)
	}
	_, err := w.files.Stat(ctx, w.at(strings.Repeat("n", 256)))
	wantErr(t, err, machine.ErrInvalid)
	for _, root := range []string{"", "relative", "/a\x00"} {
		_, err := guestfs.New(w.machine, []guestfs.Root{{Path: root}})
		wantErr(t, err, machine.ErrInvalid)
	}
	for _, root := range []string{"/proc", "/proc/self", "/proc/1/fd", "/sys"} {
		_, err := w.roots(guestfs.Root{Path: root}).List(ctx, root, nil)
		if err == nil {
			t.Errorf("%s can be listed", root)
		}
	}
	_, err = w.roots(guestfs.Root{Path: "/no/such/root"}).Stat(ctx, "/no/such/root/f")
	wantErr(t, err, fs.ErrNotExist)
}

func TestFilesLongestRootDecides(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	w.put("sub/f", "x")
	files := w.roots(guestfs.Root{Path: w.dir}, guestfs.Root{Path: w.at("sub"), ReadOnly: true})
	_, err := files.Write(ctx, w.at("g"), nil, nil)
	check(t, err)
	_, err = files.Write(ctx, w.at("sub/f"), nil, nil)
	wantErr(t, err, machine.ErrReadOnly)
	_, err = files.Read(ctx, w.at("sub/f"), nil)
	check(t, err)
	changes := map[string]error{
		"mkdir":       files.Mkdir(ctx, w.at("sub/d"), nil),
		"rename to":   files.Rename(ctx, w.at("g"), w.at("sub/g"), nil),
		"rename from": files.Rename(ctx, w.at("sub/f"), w.at("f"), nil),
		"remove":      second(files.Remove(ctx, w.at("sub/f"), nil)),
		"copy to":     second(files.Copy(ctx, w.at("g"), w.at("sub/g"), nil)),
		"tar":         second(files.WriteTar(ctx, w.at("sub"), bytes.NewReader(nil), nil)),
	}
	for name, err := range changes {
		if !errors.Is(err, machine.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = files.Copy(ctx, w.at("sub/f"), w.at("copy"), nil)
	check(t, err)
}

func second[T any](_ T, err error) error { return err }

func TestFilesCancelled(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("big", strings.Repeat("x", 8<<20))
	ctx, cancel := context.WithCancel(patience(t))
	r, err := w.files.Open(ctx, w.at("big"), nil)
	check(t, err)
	cancel()
	_, err = io.Copy(io.Discard, r)
	if err != nil { // or everything had come
		wantErr(t, err, context.Canceled)
	}
	_ = r.Close()
	ctx, cancel = context.WithTimeout(patience(t), 50*time.Millisecond)
	defer cancel()
	pr, pw := io.Pipe()
	go func() {
		<-ctx.Done()
		_, _ = pw.Write(make([]byte, 1<<20))
		_ = pw.Close()
	}()
	_, err = w.files.WriteFrom(ctx, w.at("never"), pr, nil)
	wantErr(t, err, context.DeadlineExceeded)
	_ = pr.Close()
	broken := errors.New("broken source")
	_, err = w.files.WriteFrom(patience(t), w.at("never"), io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), errorReader{broken}), nil)
	wantErr(t, err, broken)
	eventually(t, "no draft is left", func() bool { return cmp.Equal(w.names("."), []string{"big"}) })
	check(t, w.machine.Ping(patience(t)))
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
