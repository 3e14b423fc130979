package clone

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func copyOf(t *testing.T, from string, o Options) (string, error) {
	t.Helper()
	to := t.TempDir()
	source, err := os.Open(from)
	must(t, err)
	defer source.Close()
	target, err := os.Open(to)
	must(t, err)
	defer target.Close()
	return to, Tree(t.Context(), source, target, o)
}

func TestTreeCopiesFilesAndFollowsNothing(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	from := t.TempDir()
	then := time.Unix(1_000_000_000, 0)
	must(t,
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.MkdirAll(filepath.Join(from, "a/b"), 0o750),
		os.WriteFile(filepath.Join(from, "a/b/file"), []byte(strings.Repeat("x", 100_000)), 0o640),
		os.Symlink(outside, filepath.Join(from, "link")),
		unix.Mkfifo(filepath.Join(from, "pipe"), 0o600),
		unix.Mknod(filepath.Join(from, "gone"), unix.S_IFCHR, 0),
		unix.Setxattr(filepath.Join(from, "a"), "user.overlay.opaque", []byte("y"), 0),
		unix.Setxattr(filepath.Join(from, "a"), "user.overlay.redirect", []byte("/etc"), 0),
		os.Chtimes(filepath.Join(from, "a/b/file"), then, then),
		os.Chtimes(filepath.Join(from, "a/b"), then, then),
	)
	to, err := copyOf(t, from, Options{Overlay: true})
	must(t, err)
	if got, err := os.ReadFile(filepath.Join(to, "a/b/file")); len(got) != 100_000 {
		t.Errorf("file has %d bytes, %v", len(got), err)
	}
	for name, mode := range map[string]fs.FileMode{
		"a/b": fs.ModeDir | 0o750, "a/b/file": 0o640, "link": fs.ModeSymlink | 0o777, "pipe": fs.ModeNamedPipe | 0o600,
		"gone": fs.ModeDevice | fs.ModeCharDevice,
	} {
		info, err := os.Lstat(filepath.Join(to, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, name := range []string{"a/b", "a/b/file"} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || !info.ModTime().Equal(then) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if to, _ := os.Readlink(filepath.Join(to, "link")); to != outside {
		t.Errorf("link leads to %s", to)
	}
	value := make([]byte, 8)
	if n, err := unix.Getxattr(filepath.Join(to, "a"), "user.overlay.opaque", value); err != nil || n != 1 {
		t.Errorf("opaque mark: %d, %v", n, err)
	}
	if _, err := unix.Getxattr(filepath.Join(to, "a"), "user.overlay.redirect", value); !errors.Is(err, unix.ENODATA) {
		t.Errorf("redirect: %v", err)
	}
	plain, err := copyOf(t, from, Options{})
	must(t, err)
	if _, err := os.Lstat(filepath.Join(plain, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a whiteout was copied as a file: %v", err)
	}
}

func TestTreeDoesNotFollowWhatIsTooDeep(t *testing.T) {
	from := t.TempDir()
	must(t, os.MkdirAll(from+strings.Repeat("/d", MaxDepth+2), 0o700))
	if _, err := copyOf(t, from, Options{}); !errors.Is(err, ErrTooDeep) {
		t.Errorf("error = %v", err)
	}
}

func TestSharedOnlyNeverCopiesBytes(t *testing.T) {
	from := t.TempDir()
	must(t, os.WriteFile(filepath.Join(from, "f"), []byte("x"), 0o600))
	dir, err := os.Open(from)
	must(t, err)
	defer dir.Close()
	can := CanShare(dir)
	if can != nil && !errors.Is(can, ErrNotShared) {
		t.Fatal(can)
	}
	if _, err := copyOf(t, from, Options{SharedOnly: true}); !errors.Is(err, can) && !errors.Is(err, ErrNotShared) || can == nil && err != nil {
		t.Errorf("error = %v, while the directory says %v", err, can)
	}
}
