package usage_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/store"
)

// prices make sums easy: a token of input costs one millionth of a dollar, of
// output ten.
func prices() *usage.Prices {
	return usage.NewPrices(map[string]usage.Price{
		"m": {Input: 1_000_000, CachedInput: 100_000, CacheWrite: 1_000_000, Output: 10_000_000},
	})
}

// freshDB is an empty database: making its tables takes longer than most tests.
var freshDB = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "atoll-usage-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "atoll.db")
	db, err := store.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// state returns a state directory with an empty database.
func state(t testing.TB) string {
	t.Helper()
	content, err := freshDB()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "atoll.db"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens a ledger on a state directory.
func open(t testing.TB, dir string) *usage.Ledger {
	t.Helper()
	return openWith(t, dir, nil)
}

func openWith(t testing.TB, dir string, adjust func(*usage.Options)) *usage.Ledger {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	book, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	o := usage.Options{Dir: filepath.Join(dir, "usage"), DB: db, Locks: book, Prices: prices(), ProjectEvery: 20 * time.Millisecond}
	if adjust != nil {
		adjust(&o)
	}
	l, err := usage.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	return l
}

var alice = usage.Subject{Run: "r1", Session: "s1", Agent: "main", Account: "alice"}

func call(id string, input, output int64, limits ...usage.Limit) *usage.Call {
	return &usage.Call{ID: id, Subject: alice, Model: "m", Dialect: "chat", InputTokens: input, MaxOutputTokens: output, Limits: limits}
}

func spent(t testing.TB, l *usage.Ledger, scope usage.Scope, key string) usage.Charge {
	t.Helper()
	c, err := l.Spent(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMain(m *testing.M) {
	if isChild() {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// copyState puts a journal into a new state directory.
func copyState(t *testing.T, dir string, journal []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "usage"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "usage", "journal"), journal, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tryOpen opens a ledger that may be refused and says what the run spent.
func tryOpen(t *testing.T, dir string) (int64, error) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	book, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := usage.Open(t.Context(), usage.Options{Dir: filepath.Join(dir, "usage"), DB: db, Locks: book, Prices: prices()})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return spent(t, l, usage.ScopeRun, "r1").MicroUSD, nil
}
