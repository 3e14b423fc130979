package usage

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// Stored is a settled call.
type Stored struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Subject   Subject   `json:"subject"`
	Dialect   string    `json:"dialect"`
	Asked     string    `json:"modelAsked"`
	Model     string    `json:"model"`
	Status    int       `json:"status"`
	Tokens    Tokens    `json:"tokens"`
	Cost      int64     `json:"costMicroUSD"`             // by our prices, or as the upstream's answer reports
	Billed    *int64    `json:"billedMicroUSD,omitempty"` // as reconciliation found
	Priced    bool      `json:"priced"`
	Estimated bool      `json:"estimated,omitempty"`
	Crashed   bool      `json:"crashed,omitempty"` // its process died: the reservation was charged
}

// Final returns the cost of the call, and whether that is the billed one.
func (s *Stored) Final() (microUSD int64, billed bool) {
	if s.Billed != nil {
		return *s.Billed, true
	}
	return s.Cost, false
}

// Filter chooses calls; empty fields choose all.
type Filter struct {
	Since, Until time.Time
	Run, Account string
}

func (f *Filter) where() (string, []any) {
	var parts []string
	var args []any
	add := func(part string, arg any) {
		parts, args = append(parts, part), append(args, arg)
	}
	if !f.Since.IsZero() {
		add("at_ms >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("at_ms < ?", f.Until.UnixMilli())
	}
	if f.Run != "" {
		add("run = ?", f.Run)
	}
	if f.Account != "" {
		add("account = ?", f.Account)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}

// Calls returns settled calls, the oldest first. What is settled but not in
// SQLite yet is stored first.
func (l *Ledger) Calls(ctx context.Context, f Filter) ([]Stored, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	where, args := f.where()
	rows, err := l.options.DB.QueryContext(ctx, `SELECT id, at_ms, run, session, agent, account, dialect, model_asked, model, status,
		input, cached_input, cache_write, output, reasoning, cost, billed, priced, estimated, crashed
		FROM usage_calls`+where+" ORDER BY at_ms, id", args...)
	if err != nil {
		return nil, l.options.DB.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	calls := []Stored{}
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, l.options.DB.Explain(err)
		}
		calls = append(calls, c)
	}
	return calls, l.options.DB.Explain(rows.Err())
}

func scanCall(rows *sql.Rows) (c Stored, err error) {
	var at int64
	var billed sql.NullInt64
	s, t := &c.Subject, &c.Tokens
	err = rows.Scan(&c.ID, &at, &s.Run, &s.Session, &s.Agent, &s.Account, &c.Dialect, &c.Asked, &c.Model, &c.Status,
		&t.Input, &t.CachedInput, &t.CacheWrite, &t.Output, &t.Reasoning, &c.Cost, &billed, &c.Priced, &c.Estimated, &c.Crashed)
	c.At = time.UnixMilli(at)
	if billed.Valid {
		c.Billed = &billed.Int64
	}
	return c, err
}

// Unbilled returns the time of the first call since a moment whose bill is not
// known; the zero time if there is none.
func (l *Ledger) Unbilled(ctx context.Context, since time.Time) (first time.Time, err error) {
	if err := l.Flush(ctx); err != nil {
		return first, err
	}
	var at sql.NullInt64
	err = l.options.DB.QueryRowContext(ctx, "SELECT min(at_ms) FROM usage_calls WHERE billed IS NULL AND at_ms >= ?", since.UnixMilli()).Scan(&at)
	if at.Valid {
		first = time.UnixMilli(at.Int64)
	}
	return first, l.options.DB.Explain(err)
}

// RunCost is what one run cost.
type RunCost struct {
	Run         string    `json:"run"`
	Account     string    `json:"account"`
	Agent       string    `json:"agent"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Calls       int64     `json:"calls"`
	Tokens      int64     `json:"tokens"`
	MicroUSD    int64     `json:"microUSD"`           // billed where that is known
	Provisional int64     `json:"provisional"`        // calls whose bill is not known yet
	Unpriced    int64     `json:"unpriced,omitempty"` // calls without a known cost
	Crashed     int64     `json:"crashed,omitempty"`
}

// Runs returns what runs cost, the last first.
func (l *Ledger) Runs(ctx context.Context, f Filter) ([]RunCost, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	where, args := f.where()
	rows, err := l.options.DB.QueryContext(ctx, `SELECT run, account, max(agent), min(at_ms), max(at_ms), count(*),
		sum(input + cached_input + cache_write + output), sum(ifnull(billed, cost)), sum(billed IS NULL), sum(priced = 0), sum(crashed)
		FROM usage_calls`+where+" GROUP BY run, account ORDER BY max(at_ms) DESC, run", args...)
	if err != nil {
		return nil, l.options.DB.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	runs := []RunCost{}
	for rows.Next() {
		var r RunCost
		var first, last int64
		if err := rows.Scan(&r.Run, &r.Account, &r.Agent, &first, &last, &r.Calls, &r.Tokens, &r.MicroUSD, &r.Provisional, &r.Unpriced, &r.Crashed); err != nil {
			return nil, l.options.DB.Explain(err)
		}
		r.First, r.Last = time.UnixMilli(first), time.UnixMilli(last)
		runs = append(runs, r)
	}
	return runs, l.options.DB.Explain(rows.Err())
}
