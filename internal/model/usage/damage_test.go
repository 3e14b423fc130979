package usage_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/store"
)

// spentOnce is a state directory where one run has spent 20 millionths, and all
// of it is in the database.
func spentOnce(t *testing.T) (dir, journal string) {
	t.Helper()
	dir = state(t)
	use(t, dir, func(l *usage.Ledger) {
		settle(t, l, call("a", 10, 10), usage.Tokens{Input: 10, Output: 1})
	})
	return dir, filepath.Join(dir, "usage", "journal")
}

// use opens a ledger, and closes it when f is done.
func use(t *testing.T, dir string, f func(*usage.Ledger)) {
	t.Helper()
	with(t, dir, func(o *usage.Options) {
		l, err := usage.Open(t.Context(), *o)
		if err != nil {
			t.Fatal(err)
		}
		f(l)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// with gives f what a ledger is opened with.
func with(t *testing.T, dir string, f func(*usage.Options)) {
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
	f(&usage.Options{Dir: filepath.Join(dir, "usage"), DB: db, Locks: book, Prices: prices(), ProjectEvery: 5 * time.Millisecond})
}

func cut(t *testing.T, journal string, bytes int64) {
	t.Helper()
	info, err := os.Stat(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(journal, info.Size()-bytes); err != nil {
		t.Fatal(err)
	}
}

// A journal that is not what the database follows stops everything, and is
// reported with the command that mends it.
func TestDamageIsNoticed(t *testing.T) {
	for name, damage := range map[string]func(journal string){
		"lost its end":       func(j string) { cut(t, j, 11) },
		"lost whole records": func(j string) { write(t, j, read(t, j)[:28]) },
		"lost everything":    func(j string) { write(t, j, nil) },
		"another file":       func(j string) { write(t, j, []byte("this is no journal, and longer than the head of one")) },
		"changed inside": func(j string) {
			b := read(t, j)
			b[60] ^= 1
			write(t, j, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, journal := spentOnce(t)
			damage(journal)
			before := read(t, journal)
			_, err := tryOpen(t, dir)
			if !errors.Is(err, usage.ErrDamaged) || !strings.Contains(errhint.Of(err), "atoll billing repair") {
				t.Fatalf("%v (hint: %s)", err, errhint.Of(err))
			}
			with(t, dir, func(o *usage.Options) {
				if err := usage.Check(t.Context(), o); !errors.Is(err, usage.ErrDamaged) {
					t.Error(err)
				}
			})
			if string(read(t, journal)) != string(before) {
				t.Error("the damaged journal was changed")
			}
		})
	}
}

// A copy of usage/ that is older than the database is noticed, also when the
// journal was replaced in between.
func TestAnOldJournalIsNoticed(t *testing.T) {
	dir, journal := spentOnce(t)
	old := read(t, journal)
	use(t, dir, func(l *usage.Ledger) {
		settle(t, l, call("b", 10, 10), usage.Tokens{Input: 10, Output: 1})
	})
	newer := read(t, journal)
	write(t, journal, old)
	if _, err := tryOpen(t, dir); !errors.Is(err, usage.ErrDamaged) {
		t.Error(err)
	}
	write(t, journal, newer)
	use(t, dir, func(l *usage.Ledger) {
		usage.RotateAt(l, 1)
		settle(t, l, call("c", 10, 10), usage.Tokens{Input: 10, Output: 1})
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	write(t, journal, newer)
	if _, err := tryOpen(t, dir); !errors.Is(err, usage.ErrDamaged) {
		t.Error(err)
	}
}

// A process that has the journal open notices too, and goes on when it is mended.
func TestDamageStopsARunningLedger(t *testing.T) {
	dir, journal := spentOnce(t)
	use(t, dir, func(l *usage.Ledger) {
		limit := usage.Limit{Scope: usage.ScopeRun, MicroUSD: 1000}
		settle(t, l, call("b", 10, 10, limit), usage.Tokens{Input: 10, Output: 1})
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		cut(t, journal, 11)
		if _, err := l.Reserve(t.Context(), call("c", 10, 10, limit)); !errors.Is(err, usage.ErrDamaged) {
			t.Fatal(err)
		}
		with(t, dir, func(o *usage.Options) {
			if r, err := usage.Repair(t.Context(), o); err != nil || r.Damage == "" {
				t.Fatalf("%+v %v", r, err)
			}
		})
		eventually(t, func() error {
			_, err := l.Reserve(t.Context(), call("d", 10, 10, limit))
			return err
		})
		if c := spent(t, l, usage.ScopeRun, "r1"); c.MicroUSD != 40 {
			t.Errorf("spent %+v", c)
		}
	})
}

func eventually(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err := f(); err != nil; err = f() {
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// What a damaged journal holds beyond the database is kept: settled calls are
// stored once, and reservations go on.
func TestRepairKeepsWhatCanBeRead(t *testing.T) {
	dir, journal := spentOnce(t)
	with(t, dir, func(o *usage.Options) {
		if r, err := usage.Repair(t.Context(), o); err != nil || r.Damage != "" {
			t.Errorf("nothing is damaged: %+v %v", r, err)
		}
	})
	l := openWith(t, dir, func(o *usage.Options) { o.ProjectEvery = 1 << 40 })
	settle(t, l, call("b", 10, 10), usage.Tokens{Input: 10, Output: 1})
	open, err := l.Reserve(t.Context(), call("c", 10, 10))
	if err != nil {
		t.Fatal(err)
	}
	content := read(t, journal)
	content[60] ^= 1 // in a record that is stored
	write(t, journal, content)
	with(t, dir, func(o *usage.Options) {
		r, err := usage.Repair(t.Context(), o)
		if err != nil || r.Stored != 1 || r.Spent != 20 || r.Open != 1 || string(read(t, r.Aside)) != string(content) {
			t.Errorf("%+v %v", r, err)
		}
		if err := usage.Check(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
	if _, err := open.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 10, Output: 1}}); err != nil {
		t.Error(err)
	}
	if c := spent(t, l, usage.ScopeRun, "r1"); c.MicroUSD != 60 {
		t.Errorf("spent %+v", c)
	}
	if got, err := tryOpen(t, dir); err != nil || got != 60 {
		t.Error(got, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
