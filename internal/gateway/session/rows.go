package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/store"
)

// rows stores entries and tasks.
type rows struct{ db *store.DB }

// querier is a database, or a transaction on it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// sessionRef identifies a session.
type sessionRef struct{ account, key string }

// taskID identifies a task. Each account has its own idempotency keys.
type taskID struct{ account, id string }

// entry reads a session.
func (r rows) entry(ctx context.Context, q querier, p sessionRef) (*Entry, error) {
	var text string
	err := q.QueryRowContext(ctx, "SELECT entry FROM sessions WHERE account = ? AND key = ?", p.account, p.key).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, r.db.Explain(err)
	}
	return readEntry(text)
}

func readEntry(text string) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &e, nil
}

// saveEntry writes an entry, new or changed.
func (r rows) saveEntry(ctx context.Context, q querier, e *Entry) error {
	text, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `INSERT INTO sessions (account, key, agent, id, label, entry, created_at_ms, updated_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (account, key) DO UPDATE SET id = excluded.id, label = excluded.label, entry = excluded.entry, updated_at_ms = excluded.updated_at_ms`,
		e.Account, e.Key, e.Agent, e.ID, e.Label, string(text), e.Created.UnixMilli(), e.Updated.UnixMilli())
	return err
}

// storedRequest is a task as it is compared and stored.
type storedRequest struct {
	Message   string            `json:"message"`
	System    string            `json:"system,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	TimeoutMs int64             `json:"timeoutMs,omitzero"`
	Terms     Terms             `json:"terms,omitzero"`
	Files     []attach.File     `json:"attachments,omitempty"`
	Quota     Quota             `json:"quota,omitzero"` // stored, not compared
}

func (t *Task) asked(quota Quota) (string, error) {
	text, err := json.Marshal(&storedRequest{t.Message, t.System, t.Headers, t.Timeout.Milliseconds(), t.Terms, t.Files, quota}, json.Deterministic(true))
	return string(text), err
}

// storedOutcome is the outcome of a task as it is stored.
type storedOutcome struct {
	Text     string     `json:"text,omitempty"`
	Model    string     `json:"model,omitempty"`
	Usage    chat.Usage `json:"usage,omitzero"`
	MicroUSD int64      `json:"microUsd,omitzero"`
	Code     string     `json:"code,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Hint     string     `json:"hint,omitempty"`
	Report   *Report    `json:"report,omitempty"`
}

// insert stores a task, unless its id exists.
func (r rows) insert(ctx context.Context, q querier, rec *Record) (fresh bool, err error) {
	request, err := rec.asked(rec.Quota)
	if err != nil {
		return false, err
	}
	done, err := q.ExecContext(ctx, `INSERT INTO session_tasks (account, id, key, agent, session, state, request, result, accepted_at_ms, started_at_ms, ended_at_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, '{}', ?, 0, 0) ON CONFLICT (account, id) DO NOTHING`,
		rec.Account, rec.ID, rec.Key, rec.Agent, rec.Session, rec.State, request, rec.Accepted.UnixMilli())
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

// save stores the state of a task.
func (r rows) save(ctx context.Context, q querier, rec *Record) error {
	result, err := json.Marshal(&storedOutcome{rec.Text, rec.Model, rec.Usage, rec.MicroUSD, rec.Code, rec.Problem, rec.Hint, rec.Report})
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, "UPDATE session_tasks SET session = ?, state = ?, result = ?, started_at_ms = ?, ended_at_ms = ? WHERE account = ? AND id = ?",
		rec.Session, rec.State, string(result), milliseconds(rec.Started), milliseconds(rec.Ended), rec.Account, rec.ID)
	return err
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilliseconds(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// records reads tasks. The condition never contains text of a caller.
func (r rows) records(ctx context.Context, condition string, args ...any) (list []*Record, err error) {
	found, err := r.db.QueryContext(ctx, `SELECT account, id, key, agent, session, state, request, result, accepted_at_ms, started_at_ms, ended_at_ms
		FROM session_tasks WHERE `+condition, args...)
	if err != nil {
		return nil, r.db.Explain(err)
	}
	defer found.Close()
	for found.Next() {
		rec, err := readRecord(found)
		if err != nil {
			return nil, r.db.Explain(err)
		}
		list = append(list, rec)
	}
	return list, r.db.Explain(found.Err())
}

func readRecord(row *sql.Rows) (*Record, error) {
	var rec Record
	var request, result string
	var accepted, started, ended int64
	err := row.Scan(&rec.Account, &rec.ID, &rec.Key, &rec.Agent, &rec.Session, &rec.State, &request, &result, &accepted, &started, &ended)
	if err != nil {
		return nil, err
	}
	var a storedRequest
	var g storedOutcome
	if err := errors.Join(json.Unmarshal([]byte(request), &a), json.Unmarshal([]byte(result), &g)); err != nil {
		return nil, err
	}
	rec.Message, rec.System, rec.Headers, rec.Timeout = a.Message, a.System, a.Headers, time.Duration(a.TimeoutMs)*time.Millisecond
	rec.Text, rec.Model, rec.Usage, rec.MicroUSD, rec.Code, rec.Problem = g.Text, g.Model, g.Usage, g.MicroUSD, g.Code, g.Problem
	rec.Terms, rec.Files, rec.Quota, rec.Hint, rec.Report = a.Terms, a.Files, a.Quota, g.Hint, g.Report
	rec.Accepted, rec.Started, rec.Ended = fromMilliseconds(accepted), fromMilliseconds(started), fromMilliseconds(ended)
	return &rec, nil
}

// forgetTasks removes tasks that ended before a time.
func (r rows) forgetTasks(ctx context.Context, before time.Time) error {
	_, err := r.db.ExecContext(ctx, "DELETE FROM session_tasks WHERE ended_at_ms > 0 AND ended_at_ms < ?", before.UnixMilli())
	return r.db.Explain(err)
}

// like escapes text for a LIKE pattern.
func like(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}
