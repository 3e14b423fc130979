package run_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
)

// A run is found by the id that who asked knows; accounts do not hide each other's.
func TestRunsAreFoundAsTheyAreKnown(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := run.Store{DB: db}
	for i, r := range []run.Receipt{
		{ID: "a-1", KnownAs: "theirs", Account: "ann"}, {ID: "a-2", KnownAs: "theirs", Account: "ann"}, {ID: "b-1", KnownAs: "theirs", Account: "bob"}, {ID: "plain"}, {ID: "c-1", KnownAs: "plain", Account: "bob"},
	} {
		r.Created = time.UnixMilli(int64(1000 + i))
		if err := s.SaveFinished(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	of := func(account string) func(string) bool { return func(a string) bool { return a == account } }
	for _, c := range []struct {
		id   string
		sees func(string) bool
		want string
	}{
		{"theirs", nil, "b-1"}, {"theirs", of("ann"), "a-2"}, {"theirs", of("bob"), "b-1"}, {"theirs", of("eve"), ""}, {"a-1", of("bob"), ""}, {"a-1", of("ann"), "a-1"},
		{"plain", nil, "plain"}, {"plain", of("bob"), "c-1"}, {"nothing", nil, ""},
	} {
		r, err := s.GetFor(t.Context(), c.id, c.sees)
		if c.want == "" {
			if !errors.Is(err, run.ErrNotFound) {
				t.Errorf("%s: %+v, %v", c.id, r, err)
			}
			continue
		}
		if err != nil || r.ID != c.want {
			t.Errorf("%s: %+v, %v; want %s", c.id, r, err, c.want)
		}
	}
	if got := s.Resolve(t.Context(), "theirs", "ann"); got != "a-2" {
		t.Error(got)
	}
}
