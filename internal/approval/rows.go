package approval

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

const columns = `id, kind, subject, account, agent, session, run, summary, rule, evidence, hash, created_at_ms, expires_at_ms, fallback, state, answer, answered_by, answered_at_ms`

const insertRow = "INSERT INTO approvals (" + columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func selectOne(ctx context.Context, from querier, where string, args ...any) (*Question, error) {
	list, err := selectAll(ctx, from, "SELECT "+columns+" FROM approvals WHERE "+where+" LIMIT 1", args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNotFound
	}
	return &list[0], nil
}

func selectAll(ctx context.Context, from querier, query string, args ...any) (list []Question, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var q Question
		var created, expires, answered int64
		if err := rows.Scan(&q.ID, &q.Kind, &q.Subject, &q.Owner.Account, &q.Owner.Agent, &q.Owner.Session, &q.Owner.Run, &q.Summary, &q.Rule, &q.Evidence, &q.Hash,
			&created, &expires, &q.Default, &q.State, &q.Answer, &q.AnsweredBy, &answered); err != nil {
			return nil, err
		}
		q.Created, q.Expires = time.UnixMilli(created).UTC(), time.UnixMilli(expires).UTC()
		if answered > 0 {
			q.AnsweredAt = time.UnixMilli(answered).UTC()
		}
		list = append(list, q)
	}
	return list, rows.Err()
}

func insert(ctx context.Context, tx *sql.Tx, q *Question) error {
	var answered int64
	if !q.AnsweredAt.IsZero() {
		answered = q.AnsweredAt.UnixMilli()
	}
	_, err := tx.ExecContext(ctx, insertRow,
		q.ID, q.Kind, q.Subject, q.Owner.Account, q.Owner.Agent, q.Owner.Session, q.Owner.Run, q.Summary, q.Rule, q.Evidence, q.Hash,
		q.Created.UnixMilli(), q.Expires.UnixMilli(), q.Default, q.State, q.Answer, q.AnsweredBy, answered)
	return err
}

// expire gives open questions whose time is over their default answer. Of several
// processes one gets each question.
func expire(ctx context.Context, tx querier, now time.Time) (events []Event, err error) {
	list, err := selectAll(ctx, tx, "UPDATE approvals SET state = 'expired', answer = fallback, answered_at_ms = ?1 WHERE state = 'open' AND expires_at_ms <= ?1 RETURNING "+columns, now.UnixMilli())
	for i := range list {
		events = append(events, Event{EventExpired, list[i]})
	}
	return events, err
}
