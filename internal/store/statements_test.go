package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/atoll-run/atoll/internal/store"
)

// one is a database with one connection, so that everybody meets the same
// statements.
func one(t *testing.T) *store.DB {
	t.Helper()
	db := open(t)
	db.SetMaxOpenConns(1)
	return db
}

func put(t *testing.T, db *store.DB, key, value string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO facts VALUES (?, ?)", key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, db *store.DB, key string) (value string) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), "SELECT value FROM facts WHERE name = ?", key).Scan(&value)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return value
}

// A statement that is asked again sees what is there now, with what it is given
// now.
func TestAStatementAgain(t *testing.T) {
	db := one(t)
	for i := range 5 {
		key := fmt.Sprint("k", i)
		if got := get(t, db, key); got != "" {
			t.Errorf("%s is %q before it was put", key, got)
		}
		put(t, db, key, key)
		if got := get(t, db, key); got != key {
			t.Errorf("%s is %q", key, got)
		}
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO facts VALUES (?, ?)", "k1", "again"); err == nil {
		t.Error("two rows of one key")
	}
	put(t, db, "k9", "after a refusal")
	if got := get(t, db, "k9"); got != "after a refusal" {
		t.Errorf("got %q", got)
	}
}

// The same question can be asked while its answer is still being read.
func TestAStatementWithinItself(t *testing.T) {
	db := one(t)
	for i := range 3 {
		put(t, db, fmt.Sprint("k", i), "v")
	}
	const query = "SELECT name FROM facts WHERE name LIKE 'k%' ORDER BY name"
	for range 3 {
		var pairs int
		err := db.Tx(t.Context(), func(tx *sql.Tx) error { return count(t.Context(), tx, query, 2, &pairs) })
		if err != nil || pairs != 9 {
			t.Fatalf("%d pairs, %v", pairs, err)
		}
	}
}

// count goes through the rows of a query, and for each through them again.
func count(ctx context.Context, tx *sql.Tx, query string, depth int, n *int) error {
	if depth == 0 {
		*n++
		return nil
	}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := count(ctx, tx, query, depth-1, n); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Statements survive a change of the tables they are about, and there may be more
// of them than are kept.
func TestManyStatementsAndANewColumn(t *testing.T) {
	db := one(t)
	put(t, db, "k", "v")
	for round := range 2 {
		for i := range 200 {
			var n int
			if err := db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d FROM facts WHERE name = ?", i), "k").Scan(&n); err != nil || n != i {
				t.Fatalf("got %d, %v; want %d", n, err, i)
			}
		}
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("ALTER TABLE facts ADD COLUMN more%d TEXT DEFAULT ''; UPDATE facts SET value = 'w%d'", round, round)); err != nil {
			t.Fatal(err)
		}
		if got := get(t, db, "k"); got != fmt.Sprint("w", round) {
			t.Errorf("got %q", got)
		}
	}
}

// A question that was given up is as good as new for the next.
func TestAStatementThatWasInterrupted(t *testing.T) {
	db := one(t)
	const query = "SELECT count(*) FROM facts a, facts b, facts c, facts d WHERE a.name < ?"
	for i := range 60 {
		put(t, db, fmt.Sprint(i), "v")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var n int
	if err := db.QueryRowContext(ctx, query, "1").Scan(&n); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := db.QueryRowContext(t.Context(), query, "").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}
