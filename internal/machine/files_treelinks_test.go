package machine_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/machine/guestfs/hosttree"
)

// links are the names of symbolic links of a tree, and where they lead.
var links = map[string]string{"sub/up": "../a", "outside": "/etc/passwd", "dangling": "nowhere", "dir": "sub"}

// TestLinksThereAndBack: symbolic links are copied as links in both directions, whatever
// they lead to.
func TestLinksThereAndBack(t *testing.T) {
	w := newWorkplace(t, "")
	from, back := t.TempDir(), filepath.Join(t.TempDir(), "back")
	check(t, os.Mkdir(filepath.Join(from, "sub"), 0o755))
	check(t, os.WriteFile(filepath.Join(from, "a"), []byte("alpha"), 0o600))
	for name, target := range links {
		check(t, os.Symlink(target, filepath.Join(from, name)))
	}
	skipped, err := hosttree.Send(patience(t), w.files, archive.Source{Path: from, Top: ".", Links: true}, w.at("tree"))
	check(t, err)
	wantLinks(t, w.at("tree"))
	check(t, os.Link(w.at("tree/a"), w.at("tree/sub/same")))
	check(t, os.Mkdir(back, 0o750))
	again, err := hosttree.Update(patience(t), w.files, w.at("tree"), archive.Target{Dir: back})
	check(t, err)
	wantLinks(t, back)
	if text, err := os.ReadFile(filepath.Join(back, "a")); string(text) != "alpha" || err != nil || len(skipped)+len(again) > 0 {
		t.Errorf("%q, %v; left out: %v, %v", text, err, skipped, again)
	}
	if text, err := os.ReadFile(filepath.Join(back, "sub/same")); string(text) != "alpha" || err != nil {
		t.Errorf("the second name of a file: %q, %v", text, err)
	}
	if left, err := os.ReadDir(filepath.Dir(back)); len(left) != 1 || err != nil {
		t.Errorf("beside it: %v, %v", left, err)
	}
}

func wantLinks(t *testing.T, dir string) {
	t.Helper()
	for name, want := range links {
		if target, err := os.Readlink(filepath.Join(dir, name)); target != want || err != nil {
			t.Errorf("%s leads to %q, %v", name, target, err)
		}
	}
}

// TestNothingGoesThroughLinks: what an archive has below a link is refused inside, and on
// the host it stays below the directory.
func TestNothingGoesThroughLinks(t *testing.T) {
	w := newWorkplace(t, "")
	outside := t.TempDir()
	hostile := func(name string) []*tar.Header {
		return []*tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: name, Typeflag: tar.TypeReg, Size: 1}}
	}
	_, err := w.files.WriteTar(patience(t), w.dir, archiveOf(t, hostile("l/f")...), &guestfs.TarOptions{Links: true})
	wantErr(t, err, machine.ErrSymlink)
	if err := archive.Unpack(t.Context(), archiveOf(t, hostile("l/f")...), archive.Target{Dir: t.TempDir(), Links: true}); err == nil {
		t.Error("it was unpacked")
	}
	if err := archive.Unpack(t.Context(), archiveOf(t, hostile("f")...), archive.Target{Dir: t.TempDir()}); err == nil {
		t.Error("a link was unpacked that nobody asked for")
	}
	if left, err := os.ReadDir(outside); len(left) > 0 || err != nil {
		t.Errorf("outside: %v, %v", left, err)
	}
}
