package run

import (
	"context"
	"strings"
	"time"
)

// MaxList bounds a page of List.
const MaxList = 1000

// MaxTask is how much of a task a receipt has.
const MaxTask = 4 << 10

// Filter chooses runs; empty fields choose all.
type Filter struct {
	Most    int    // of a page; 0 is MaxList
	Before  string // the id of a run: only those that were asked for before it
	Account string
	Variant string
	Open    bool   // only those that are not over
	State   string // open, done or failed
	Code    string // of the failure
	Model   string
	Branch  string // key of the branch
	Text    string // a part of the task, whatever its case, or the beginning of the id
	Since   time.Time
	Until   time.Time
}

// conditions collects those of a query.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) add(wanted bool, condition string, values ...any) {
	if wanted {
		c.where, c.args = append(c.where, condition), append(c.args, values...)
	}
}

func (c *conditions) String() string {
	if len(c.where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.where, " AND ")
}

// conditions are those of all pages: without Before.
func (f *Filter) conditions() *conditions {
	c := &conditions{}
	c.add(f.Account != "", "account = ?", f.Account)
	c.add(f.Variant != "", "variant = ?", f.Variant)
	c.add(f.Open || f.State == "open", "step <> 'done'")
	c.add(f.State == "done", "step = 'done' AND receipt ->> '$.error' IS NULL")
	c.add(f.State == "failed", "step = 'done' AND receipt ->> '$.error' IS NOT NULL")
	c.add(f.Code != "", "receipt ->> '$.error.code' = ?", f.Code)
	c.add(f.Model != "", "receipt ->> '$.model' = ?", f.Model)
	c.add(f.Branch != "", "receipt ->> '$.branch' = ?", f.Branch)
	c.add(f.Text != "", "(instr(lower(coalesce(receipt ->> '$.task', '')), lower(?)) OR substr(id, 1, length(?)) = ?)", f.Text, f.Text, f.Text)
	c.add(!f.Since.IsZero(), "created_at_ms >= ?", f.Since.UnixMilli())
	c.add(!f.Until.IsZero(), "created_at_ms < ?", f.Until.UnixMilli())
	return c
}

// List returns receipts, the latest first.
func (s Store) List(ctx context.Context, f Filter) ([]Receipt, error) {
	if f.Before != "" {
		if _, err := s.Get(ctx, f.Before); err != nil {
			return nil, err
		}
	}
	query, args := f.page()
	rows, err := s.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	return collect[Receipt](s, rows)
}

// page returns the query of a page.
func (f *Filter) page() (query string, args []any) {
	c := f.conditions()
	c.add(f.Before != "", "(created_at_ms, id) < (SELECT created_at_ms, id FROM runs WHERE id = ?)", f.Before)
	most := f.Most
	if most <= 0 || most > MaxList {
		most = MaxList
	}
	return "SELECT receipt FROM runs" + c.String() + " ORDER BY created_at_ms DESC, id DESC LIMIT ?", append(c.args, most)
}

// count returns the query of Count.
func (f *Filter) count() (query string, args []any) {
	c := f.conditions()
	return "SELECT count(*) FROM runs" + c.String(), c.args
}

// Count returns how many runs a filter chooses, on all pages.
func (s Store) Count(ctx context.Context, f Filter) (n int, err error) {
	query, args := f.count()
	err = s.DB.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, s.DB.Explain(err)
}
