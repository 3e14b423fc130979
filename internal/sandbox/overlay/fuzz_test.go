package overlay

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// FuzzRedirect checks that no value of a redirect mark leads out of the base.
func FuzzRedirect(f *testing.F) {
	for _, value := range []string{"a", "/a/b", "..", "/..", "a/b", "/a/../b", "", "/", "//", "\x00", "/a\x00", "\xff", strings.Repeat("a/", 3000)} {
		f.Add(value, "x/y", true)
		f.Add(value, "", false)
	}
	f.Fuzz(func(t *testing.T, value, lower string, hasLower bool) {
		if lower != "" && !isPath(lower) {
			return
		}
		got, err := redirectPath(value, lower, hasLower)
		if err != nil || got == "" {
			return
		}
		if !filepath.IsLocal(got) || filepath.Clean(got) != got || strings.ContainsRune(got, 0) {
			t.Errorf("redirectPath(%q, %q) = %q", value, lower, got)
		}
		if !strings.HasPrefix(value, "/") && filepath.Dir(got) != filepath.Clean(lower) {
			t.Errorf("a name leads to %q beside %q", got, lower)
		}
	})
}

// FuzzManifest checks that any bytes are a manifest or refused, within memory.
func FuzzManifest(f *testing.F) {
	var whole bytes.Buffer
	w := newManifestWriter(&whole)
	w.add("file", entry{Mode: unix.S_IFREG | 0o644, Size: 5, Mtime: -1, Ctime: 1 << 60, Ino: 7, Sum: "s"})
	w.add("link\xff", entry{Mode: unix.S_IFLNK, Link: "to"})
	if err := errors.Join(w.endDir("", hostpath.ID{Device: 1, Inode: 2}), w.endDir("sub", hostpath.ID{Device: 1, Inode: 3}), w.finish()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte(manifestMagic))
	f.Add(append(bytes.Repeat([]byte{0xff}, 8), manifestMagic...))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readManifest(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for path := range m.dirs {
			found, err := m.entries(path)
			if err == nil && len(found) > len(data) {
				t.Errorf("%d entries of %d bytes", len(found), len(data))
			}
		}
	})
}

// FuzzUpper checks the reader with an upper of any files, links and marks: it
// ends, lists no path twice and none that leaves, and opens nothing of the host
// beside the base.
func FuzzUpper(f *testing.F) {
	f.Add([]byte("fa\x00da\x00oa\x00wb\x00lc\x00ra /b\x00"))
	f.Add([]byte("dx\x00rx /a\x00dx/y\x00rx/y b\x00fx/y/z\x00wx/c\x00"))
	f.Add([]byte("da\x00oa\x00pa/p\x00ma\x00la/l\x00fa/l/x\x00"))
	f.Add([]byte("da\x00db\x00ra /b\x00rb /a\x00dc\x00rc /a/b\x00"))
	f.Fuzz(func(t *testing.T, program []byte) {
		tree := fuzzTree(t, program)
		seen := map[string]bool{}
		for c, err := range tree.Changes(t.Context()) {
			if err != nil {
				t.Fatalf("%q: %v", program, err)
			}
			if seen[c.Path] || !isPath(c.Path) && c.Kind != Special || c.From != "" && !isPath(c.From) {
				t.Errorf("%q: %+v", program, c)
			}
			seen[c.Path] = true
			if c.Kind == Deleted || !c.Mode.IsRegular() || c.Kind == Special {
				continue
			}
			file, err := tree.Open(c.Path)
			if err != nil {
				t.Errorf("%q: Open(%q): %v", program, c.Path, err)
				continue
			}
			closeFile(file)
		}
		if err := tree.Reconcile(t.Context()); err != nil {
			t.Errorf("%q: Reconcile: %v", program, err)
		}
	})
}

// fuzzTree makes an overlay whose upper is what the program says: commands of a
// letter and a path each, which may fail.
func fuzzTree(t *testing.T, program []byte) *Tree {
	t.Helper()
	top := t.TempDir()
	fill(t, top, map[string]string{"base/a/b/c": "1", "base/a/d": "2", "base/b/c": "3", "base/c": "4", "base/l": "-> /etc"})
	marks := MarksUser
	if os.Geteuid() == 0 {
		marks = MarksTrusted
	}
	tree, err := Prepare(t.Context(), Request{State: top + "/state", Dir: top + "/state/overlay/s/0", Base: top + "/base", Want: Kernel, Kernel: KernelMount{Marks: marks}})
	if err != nil {
		t.Fatal(err)
	}
	upper, err := os.OpenRoot(tree.Upper())
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	for command := range bytes.SplitSeq(program, []byte{0}) {
		if len(command) > 1 && len(command) < 200 {
			putUpper(upper, marks, command[0], string(command[1:]))
		}
	}
	return tree
}

// putUpper carries out one command; one that fails makes another tree.
func putUpper(upper *os.Root, marks Marks, letter byte, rest string) {
	path, value, _ := strings.Cut(rest, " ")
	if !isPath(path) {
		return
	}
	at := filepath.Join(upper.Name(), path)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(at)); err != nil || parent != filepath.Dir(at) {
		return // only below the upper
	}
	prefix := string(marks) + ".overlay."
	switch letter {
	case 'f':
		_ = upper.WriteFile(path, []byte(value), 0o644)
	case 'd':
		_ = upper.Mkdir(path, 0o755)
	case 'l':
		_ = upper.Symlink("/etc/"+value, path)
	case 'p':
		_ = unix.Mkfifo(at, 0o644)
	case 'w':
		_ = unix.Mknod(at, unix.S_IFCHR, 0)
	case 'o':
		_ = unix.Lsetxattr(at, prefix+"opaque", []byte("y"), 0)
	case 'r':
		_ = unix.Lsetxattr(at, prefix+"redirect", []byte(value), 0)
	case 'm':
		_ = unix.Lsetxattr(at, prefix+"metacopy", []byte(value), 0)
	}
}
