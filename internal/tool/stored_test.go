package tool_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/tool"
)

func TestStoredMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	open := func() *store.DB {
		db, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db := open()
	remember := func(session, file string, v guestfs.Version) {
		t.Helper()
		if err := tool.NewStoredMemory(db, session).Remember(t.Context(), file, v); err != nil {
			t.Fatal(err)
		}
	}
	recalls := func(db *store.DB, session, file string, want guestfs.Version) {
		t.Helper()
		if got, err := tool.NewStoredMemory(db, session).Recall(t.Context(), file); err != nil || got != want {
			t.Errorf("%s, %s: %q, %v; want %q", session, file, got, err, want)
		}
	}
	remember("a", "f", "1")
	remember("b", "f", "2")
	remember("a", "f", "3")
	remember("a", "g", "4")
	remember("a", "g", "")
	again := open()
	recalls(again, "a", "f", "3")
	recalls(again, "b", "f", "2")
	recalls(again, "a", "g", "")
	recalls(again, "c", "f", "")

	_, err := db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO seen_files SELECT 'many', 'f' || i, 'v', ? + i FROM n`, tool.MaxSeen+5, time.Now().Add(-time.Hour).UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	remember("old", "f", "v")
	if _, err := db.ExecContext(t.Context(), "UPDATE seen_files SET seen_at_ms = 1 WHERE session = 'old'"); err != nil {
		t.Fatal(err)
	}
	remember("many", "last", "v")
	var rows int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM seen_files WHERE session = 'many'").Scan(&rows); err != nil || rows != tool.MaxSeen {
		t.Errorf("%d rows, %v", rows, err)
	}
	recalls(db, "many", "last", "v")
	recalls(db, "many", fmt.Sprint("f", tool.MaxSeen+5), "v")
	recalls(db, "many", "f1", "")
	recalls(db, "old", "f", "")
}
