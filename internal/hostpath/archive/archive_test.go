package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
)

// tree is a directory's files by name; directories have the content "/".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			found[name] = "/"
		default:
			content, err := os.ReadFile(path)
			found[name] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestThereAndBack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a.txt"), "a", 0o644)
	write(t, filepath.Join(from, "sub/run.sh"), "#!", 0o755)
	if err := os.Mkdir(filepath.Join(from, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(from, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	skipped, err := archive.Pack(t.Context(), archive.Source{Path: from, Top: "top"}, &b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fifo", "link"}, skipped); diff != "" {
		t.Error(diff)
	}
	files := map[string]string{"a.txt": "a", "sub": "/", "sub/run.sh": "#!", "empty": "/"}
	for rename, prefix := range map[string]string{"": "top", "other": "other", ".": ""} {
		dir := filepath.Join(to, "r"+rename)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := archive.Unpack(t.Context(), bytes.NewReader(b.Bytes()), archive.Target{Dir: dir, Rename: rename}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, tree(t, filepath.Join(dir, prefix))); diff != "" {
			t.Errorf("renamed to %q: %s", rename, diff)
		}
	}
	info, err := os.Stat(filepath.Join(to, "r", "top/sub/run.sh"))
	original, _ := os.Stat(filepath.Join(from, "sub/run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 || !info.ModTime().Equal(original.ModTime()) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestSingleFile(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a.txt"), "new", 0o600)
	write(t, filepath.Join(to, "b.txt"), "old", 0o600)
	var b bytes.Buffer
	if _, err := archive.Pack(t.Context(), archive.Source{Path: filepath.Join(from, "a.txt"), Top: "a.txt"}, &b); err != nil {
		t.Fatal(err)
	}
	if err := archive.Unpack(t.Context(), &b, archive.Target{Dir: to, Rename: "b.txt"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b.txt": "new"}, tree(t, to)); diff != "" {
		t.Error(diff)
	}
}

// TestHostileArchives are made by somebody who wants something of the host.
func TestHostileArchives(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "sesame", 0o600)
	entry := func(h tar.Header, content string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h.Size = int64(len(content))
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(content))
		_ = w.Close()
		return b.Bytes()
	}
	cases := map[string][]byte{
		"up":              entry(tar.Header{Name: "../escaped"}, "x"),
		"up inside":       entry(tar.Header{Name: "a/../../escaped"}, "x"),
		"absolute":        entry(tar.Header{Name: "/etc/escaped"}, "x"),
		"deep":            entry(tar.Header{Name: strings.Repeat("a/", 200) + "b"}, "x"),
		"symlink":         entry(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, ""),
		"hard link":       entry(tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""),
		"device":          entry(tar.Header{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""),
		"fifo":            entry(tar.Header{Name: "f", Typeflag: tar.TypeFifo}, ""),
		"link in the way": entry(tar.Header{Name: "planted/secret"}, "overwritten"),
		"truncated":       entry(tar.Header{Name: "t"}, "content")[:514],
		"nonsense":        bytes.Repeat([]byte("x"), 2048),
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(outside, filepath.Join(dir, "planted")); err != nil {
				t.Fatal(err)
			}
			if err := archive.Unpack(t.Context(), bytes.NewReader(content), archive.Target{Dir: dir}); err == nil {
				t.Error("it was unpacked")
			}
			if left, _ := os.ReadDir(dir); len(left) > 2 {
				t.Errorf("left behind: %v", left)
			}
			if content, _ := os.ReadFile(filepath.Join(outside, "secret")); string(content) != "sesame" {
				t.Errorf("the secret is %q", content)
			}
		})
	}
}

// TestReplacedLink: a link where a file goes is replaced, not followed.
func TestReplacedLink(t *testing.T) {
	outside, dir, from := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "sesame", 0o600)
	write(t, filepath.Join(from, "f"), "new", 0o4755)
	if err := os.Chmod(filepath.Join(from, "f"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := archive.Pack(t.Context(), archive.Source{Path: filepath.Join(from, "f"), Top: "f"}, &b); err != nil {
		t.Fatal(err)
	}
	if err := archive.Unpack(t.Context(), &b, archive.Target{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(dir, "f"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if content, _ := os.ReadFile(filepath.Join(outside, "secret")); string(content) != "sesame" {
		t.Errorf("the secret is %q", content)
	}
}

func TestMissing(t *testing.T) {
	if _, err := archive.Pack(t.Context(), archive.Source{Path: filepath.Join(t.TempDir(), "none"), Top: "x"}, &bytes.Buffer{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := archive.Unpack(t.Context(), &bytes.Buffer{}, archive.Target{Dir: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// sized is an archive of files with these lengths.
func sized(t *testing.T, lengths ...int) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for n, length := range lengths {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("f", n+1), Mode: 0o600, Size: int64(length)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, length)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestMostBytes: an archive is unpacked up to its limit, each entry counted, and not beyond.
func TestMostBytes(t *testing.T) {
	const most = 2*archive.EntryBytes + 1000
	for _, c := range []struct {
		lengths []int
		fits    bool
	}{{[]int{1000, 0}, true}, {[]int{1001, 0}, false}, {[]int{0, 1000}, true}, {[]int{0, 1001}, false}, {[]int{0, 0, 0}, false}} {
		dir := t.TempDir()
		err := archive.Unpack(t.Context(), sized(t, c.lengths...), archive.Target{Dir: dir, MaxBytes: most})
		if errors.Is(err, archive.ErrTooLarge) == c.fits || c.fits && err != nil {
			t.Errorf("%v: %v", c.lengths, err)
		}
		if left, _ := os.ReadDir(dir); !c.fits && len(left) == len(c.lengths) {
			t.Errorf("%v: all was written", c.lengths)
		}
	}
}

// TestRoom: what has no room is refused before it is written, and what loses it while it is
// written is not kept.
func TestRoom(t *testing.T) {
	full := errors.New("full")
	const large = 40 << 20
	for name, room := range map[string]func(asked int, bytes int64) error{
		"before": func(_ int, bytes int64) error {
			if bytes >= large {
				return full
			}
			return nil
		},
		"meanwhile": func(asked int, bytes int64) error {
			if asked == 3 && bytes == 0 {
				return full
			}
			return nil
		},
	} {
		dir, asked := t.TempDir(), 0
		err := archive.Unpack(t.Context(), sized(t, 10, large), archive.Target{Dir: dir, Room: func(bytes int64) error { asked++; return room(asked, bytes) }})
		if !errors.Is(err, full) {
			t.Errorf("%s: %v after %d questions", name, err, asked)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "f" {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
