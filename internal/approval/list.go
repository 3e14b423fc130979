package approval

import (
	"context"
	"database/sql"
	"strings"
)

// Filter chooses questions; empty fields choose all.
type Filter struct {
	Account string
	Kind    string
	Subject string
	Open    bool
	After   string // the id of a question: only those that are listed after it
	Most    int    // 0 is MaxList
}

// MaxList bounds List.
const MaxList = 1000

// List returns questions, the newest first.
func (q *Queue) List(ctx context.Context, f Filter) (list []Question, err error) {
	where, args := []string{"1"}, []any{}
	add := func(wanted bool, condition string, values ...any) {
		if wanted {
			where, args = append(where, condition), append(args, values...)
		}
	}
	add(f.Account != "", "account = ?", f.Account)
	add(f.Kind != "", "kind = ?", f.Kind)
	add(f.Subject != "", "subject = ?", f.Subject)
	add(f.Open, "state = 'open'")
	add(f.After != "", "(-created_at_ms, id) > (SELECT -created_at_ms, id FROM approvals WHERE id = ?)", f.After)
	if f.Most <= 0 || f.Most > MaxList {
		f.Most = MaxList
	}
	var events []Event
	err = q.tx(ctx, func(tx *sql.Tx) (err error) {
		if events, err = expire(ctx, tx, q.now()); err != nil {
			return err
		}
		list, err = selectAll(ctx, tx, "SELECT "+columns+" FROM approvals WHERE "+strings.Join(where, " AND ")+" ORDER BY created_at_ms DESC, id LIMIT ?", append(args, f.Most)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.publish(events)
	return list, nil
}

// Get returns a question by its id.
func (q *Queue) Get(ctx context.Context, id string) (found *Question, err error) {
	var events []Event
	err = q.tx(ctx, func(tx *sql.Tx) (err error) {
		if events, err = expire(ctx, tx, q.now()); err != nil {
			return err
		}
		found, err = selectOne(ctx, tx, "id = ?", id)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.publish(events)
	return found, nil
}
