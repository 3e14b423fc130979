package hosttree

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestExchangeKeepsTheOwner: a directory that was fetched belongs to whom the old one did.
func TestExchangeKeepsTheOwner(t *testing.T) {
	need.Root(t, "it gives files away")
	base := t.TempDir()
	dir, fresh := filepath.Join(base, "copy"), filepath.Join(base, "fresh")
	for _, path := range []string{dir, fresh} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Lchown(dir, 1000, 1001); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fresh, "f"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := exchange(dir, fresh); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 1000 || owner.Gid != 1001 || info.Mode().Perm() != 0o700 {
		t.Errorf("owner %d:%d, mode %v", owner.Uid, owner.Gid, info.Mode())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "f")); string(text) != "new" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if old, err := os.ReadDir(fresh); len(old) != 0 || err != nil {
		t.Errorf("where the new one was: %v, %v", old, err)
	}
}
