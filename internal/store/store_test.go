package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/store"
)

func TestOpenMakesTheFileOnceForMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "atoll.db")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			db, err := store.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "INSERT INTO facts VALUES ('x','1') ON CONFLICT DO NOTHING"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestTxIsAllOrNothing(t *testing.T) {
	db := open(t)
	boom := errors.New("boom")
	err := db.Tx(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO facts VALUES ('x','1')"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM facts").Scan(&n); err != nil || n != 0 {
		t.Fatalf("%d rows, %v; want none", n, err)
	}
}

func TestADamagedFileIsRefusedAndKept(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"not a database": func([]byte) []byte { return []byte(strings.Repeat("garbage ", 1000)) },
		"header gone":    func(b []byte) []byte { return append(bytes.Repeat([]byte{0xff}, 100), b[100:]...) },
		"pages overwritten": func(b []byte) []byte {
			return append(b[:100:100], bytes.Repeat([]byte{0xff}, len(b)-100)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "atoll.db")
			db, err := store.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			broken := damage(whole)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			err = useIt(t, path)
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want ErrDamaged and the path", err)
			}
			if !strings.Contains(errhint.Of(err), ".damaged") {
				t.Errorf("hint %q does not say how to set it aside", errhint.Of(err))
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(after, broken) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

// useIt opens the file and asks something of it: some damage shows only then.
func useIt(t *testing.T, path string) error {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "SELECT count(*) FROM sandboxes")
	return db.Explain(err)
}

func TestAFileOfANewerVersionIsRefused(t *testing.T) {
	db := open(t)
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = 9999"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), db.Path()); !errors.Is(err, store.ErrTooNew) {
		t.Fatalf("got %v, want ErrTooNew", err)
	}
}

// TestFileBetweenTwoMigrations: a file that an earlier version left without the
// newest migration, and with a version of its own, gets the table.
func TestFileBetweenTwoMigrations(t *testing.T) {
	db := open(t)
	var newest int
	if err := db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&newest); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(names) != newest {
		t.Fatalf("version %d with %d migrations, %v", newest, len(names), err)
	}
	path := filepath.Join(t.TempDir(), "atoll.db")
	makeOld(t, path, 6)
	again, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.ExecContext(t.Context(), "SELECT count(*) FROM model_slots"); err != nil {
		t.Error(err)
	}
}

// TestPoolRows: rows from before pools are kept on the way there and back, and a row of a
// pool only while it is allowed.
func TestPoolRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	makeOld(t, path, 12)
	handle, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	steps, err := goose.NewProvider(goose.DialectSQLite3, handle, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	insert := func(name, kind, phase string) error {
		_, err := handle.ExecContext(t.Context(), `INSERT INTO sandboxes (container_name, session_key, created_at_ms, last_used_at_ms, image, kind, phase, backend, made_as)
			VALUES (?, 'key', 1, 2, 'image', ?, ?, 'linux', 'made')`, name, kind, phase)
		return err
	}
	count := func() (n int) {
		if err := handle.QueryRowContext(t.Context(), "SELECT count(*) FROM sandboxes WHERE session_key = 'key' AND last_used_at_ms = 2 AND made_as = 'made'").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	if err := errors.Join(insert("old", "sandbox", "ready"), insert("view", "browser", "removing")); err != nil || insert("early", "pool", "ready") == nil {
		t.Fatalf("before: %v, or a pool was allowed", err)
	}
	if _, err := steps.UpTo(t.Context(), 13); err != nil || count() != 2 {
		t.Fatalf("up: %d rows, %v", count(), err)
	}
	if err := errors.Join(insert("waits", "pool", "ready"), insert("taken", "pool", "claimed")); err != nil {
		t.Error(err)
	}
	if insert("wrong", "sandbox", "claimed") == nil || insert("odd", "other", "ready") == nil {
		t.Error("a row that makes no sense was allowed")
	}
	if _, err := steps.DownTo(t.Context(), 12); err != nil || count() != 2 || insert("late", "pool", "ready") == nil {
		t.Errorf("down: %d rows, %v", count(), err)
	}
	if _, err := steps.UpTo(t.Context(), 13); err != nil || count() != 2 {
		t.Errorf("up again: %d rows, %v", count(), err)
	}
}

// makeOld makes a file with the first migrations only.
func makeOld(t *testing.T, path string, version int64) {
	t.Helper()
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	steps, err := goose.NewProvider(goose.DialectSQLite3, old, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if _, err := old.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "atoll.db")
	for b.Loop() {
		db, err := store.Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		_ = db.Close()
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A process that ends without closing the file leaves its log: the next finds
// what it wrote, and the log does not grow for ever.
func TestALogThatWasLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	const writes = 2000
	for left := range 3 {
		db, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		for n := range writes {
			if _, err := db.ExecContext(t.Context(), "INSERT INTO facts VALUES (?, ?)", fmt.Sprint(left, n), strings.Repeat("x", 1000)); err != nil {
				t.Fatal(err)
			}
		}
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM facts WHERE value LIKE 'x%'").Scan(&rows); err != nil || rows != (left+1)*writes {
			t.Errorf("%d rows, %v", rows, err)
		}
	}
	const most = 2 << 20
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > most {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
}
