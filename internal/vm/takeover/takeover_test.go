package takeover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/vm/takeover"
)

// project makes a directory with files, and one beside it that must stay as it is.
func project(t *testing.T) (dir, keep string) {
	t.Helper()
	top := t.TempDir()
	dir, keep = filepath.Join(top, "project"), filepath.Join(top, "keep")
	for name, text := range map[string]string{"project/a": "a\n", "project/d/b": "b\n", "outside/x": "x\n"} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "way")); err != nil {
		t.Fatal(err)
	}
	return dir, keep
}

// all returns every file below a directory with its content and mode.
func all(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(strings.TrimPrefix(path, dir) + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(text)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestApplyAndUndo(t *testing.T) {
	dir, keep := project(t)
	before := all(t, dir)
	batch, err := takeover.Apply(dir, keep, "", []takeover.Change{
		{Path: "a", Content: []byte("changed\n"), Mode: 0o755}, {Path: "d/b", Delete: true}, {Path: "new", Content: []byte("n"), Mode: 0o644},
		{Path: "dir", Dir: true}, {Path: "dir/link", Link: "../a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/a -rwxr-xr-xchanged\n", "/new -rw-r--r--n\n", "/dir/link L"} {
		if got := all(t, dir); !strings.Contains(got, want) || strings.Contains(got, "/d/b") || strings.Contains(got, ".atoll-") {
			t.Errorf("not %q:\n%s", want, got)
		}
	}
	if undone, err := takeover.Undo(dir, keep, batch.ID); err != nil || len(undone.Paths) != 5 {
		t.Fatalf("%v %v", undone, err)
	}
	if after := all(t, dir); after != before {
		t.Errorf("%s\nwas\n%s", after, before)
	}
}

// What cannot be applied as a whole changes nothing.
func TestAllOrNothing(t *testing.T) {
	for _, bad := range []takeover.Change{
		{Path: "../outside/x", Delete: true}, {Path: "/etc/passwd", Content: []byte("x")}, {Path: "way/x", Content: []byte("escaped")}, {Path: "way/x", Delete: true},
		{Path: "nowhere", Delete: true}, {Path: "a/below", Content: []byte("x")}, {Path: "d", Delete: true},
	} {
		dir, keep := project(t)
		top := filepath.Dir(dir)
		before := all(t, top)
		if batch, err := takeover.Apply(dir, keep, "", []takeover.Change{{Path: "a", Content: []byte("changed\n"), Mode: 0o644}, {Path: "new/deep/c", Content: []byte("n"), Mode: 0o644}, bad}); err == nil {
			t.Errorf("%+v was applied as %v", bad, batch)
		}
		if err := os.RemoveAll(keep); err != nil {
			t.Fatal(err)
		}
		if after := all(t, top); after != before {
			t.Errorf("%+v:\n%s\nwas\n%s", bad, after, before)
		}
	}
}

func TestUndoIsRefused(t *testing.T) {
	dir, keep := project(t)
	batch, err := takeover.Apply(dir, keep, "", []takeover.Change{{Path: "a", Content: []byte("changed\n"), Mode: 0o644}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := takeover.Undo(dir, keep, batch.ID); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Error(err)
	}
	for _, id := range []string{"", "../x", "ABCDEFGHIJKL"} {
		if _, err := takeover.Undo(dir, keep, id); err == nil {
			t.Errorf("%q was undone", id)
		}
	}
}
