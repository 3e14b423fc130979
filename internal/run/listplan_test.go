package run

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/store"
)

// Pages and counts of runs are read along an index: nothing is sorted, and those of an
// account or of a variant do not read the others.
func TestListPlans(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	since := time.UnixMilli(5)
	for want, f := range map[string]Filter{
		"runs_by_time":                          {},
		"runs_by_time (created_at_ms>?)":        {Since: since, State: "failed"},
		"runs_by_account (account=?)":           {Account: "a"},
		"runs_by_account (account=? AND":        {Account: "a", Since: since, State: "failed"},
		"runs_by_account (account=? AND c":      {Account: "a", Since: since, Before: "x"},
		"runs_by_variant (variant=?)":           {Variant: "v"},
		"runs_unfinished":                       {Open: true},
		"runs_unfinished_by_account (account=?": {Open: true, Account: "a"},
	} {
		page, args := f.page()
		count, countArgs := f.count()
		for query, args := range map[string][]any{page: args, count: countArgs} {
			if plan := planOf(t, db, query, args); !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s: %s, want %s", query, plan, want)
			}
		}
	}
	if plan := planOf(t, db, byCallerID, []any{"x", maxKnown}); !strings.Contains(plan, "runs_by_caller_id") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("by the caller's id: %s", plan)
	}
}

func planOf(t *testing.T, db *store.DB, query string, args []any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "; ")
}
