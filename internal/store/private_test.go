package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/store"
)

// TestDatabaseIsPrivate: the file and those beside it are for their user only,
// also where an earlier version made them.
func TestDatabaseIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	for _, round := range []string{"new", "of an earlier version"} {
		db, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode != 0o600 {
				t.Errorf("%s: %s has mode %04o", round, name, mode)
			}
			if err := os.Chmod(name, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s was not mended: %v, %v", round, name, info, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
