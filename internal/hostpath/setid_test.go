package hostpath

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

func TestSetIDBelow(t *testing.T) {
	need.Root(t, "it gives files away")
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"a/plain": 0o755, "a/own": 0o755 | os.ModeSetuid, "a/group": 0o755 | os.ModeSetgid, "a/sealed": 0o555 | os.ModeSetuid, "a/open": 0o777 | os.ModeSetuid,
	} {
		path := filepath.Join(dir, name)
		mustDo(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mustDo(t, os.WriteFile(path, nil, 0o600))
		mustDo(t, os.Chown(path, 1234, 2345))
		mustDo(t, os.Chmod(path, mode))
	}
	mustDo(t, os.Chmod(filepath.Join(dir, "a"), 0o755|os.ModeSetgid)) // of a directory it lends nothing
	mustDo(t, os.Symlink("own", filepath.Join(dir, "a/link")))
	for _, c := range []struct {
		uid, gid int
		want     []string
	}{
		{1234, 9, []string{"group", "open", "own"}},
		{99, 99, []string{"open"}},
		{-1, -1, []string{"group", "open", "own", "sealed"}},
	} {
		found, complete := Disk{}.SetIDBelow(dir, c.uid, c.gid)
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		if !slices.Equal(found, c.want) || !complete {
			t.Errorf("user %d: %q, complete %v, want %q", c.uid, found, complete, c.want)
		}
	}
}
