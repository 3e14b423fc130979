package run

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/store"
)

// Store keeps runs and their events.
type Store struct{ DB *store.DB }

var (
	// ErrNotFound means that there is no run with this id.
	ErrNotFound = errors.New("no such run")
	// ErrIDReused means that the id was used for another request.
	ErrIDReused = errors.New("the run id was used for another request")
)

// accept writes a request down. It reports whether it is new; an id that was
// used for another request is ErrIDReused.
func (s Store) accept(ctx context.Context, r *Request, now time.Time) (fresh bool, err error) {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return false, err
	}
	receipt := Receipt{
		ID: r.ID, Variant: r.Variant, Account: r.Account, Model: r.Model, Step: Accepted, Created: now.UTC(),
		Task: cutTo(r.Task(), MaxTask), Agent: r.Agent, Branch: r.Branch, Trace: cmp.Or(r.Trace, traceparent.TraceIDFor(r.ID)),
	}
	state, err := json.Marshal(&receipt)
	if err != nil {
		return false, err
	}
	err = s.DB.Tx(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO runs (id, account, variant, request, step, receipt, created_at_ms, changed_at_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			r.ID, r.Account, r.Variant, string(text), Accepted, string(state), now.UnixMilli(), now.UnixMilli())
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if fresh = n == 1; err != nil || fresh {
			return err
		}
		var had string
		if err := tx.QueryRowContext(ctx, "SELECT request FROM runs WHERE id = ?", r.ID).Scan(&had); err != nil {
			return err
		}
		if same, err := isSame(had, r); err != nil || !same {
			return errors.Join(err, fmt.Errorf("run %s: %w", r.ID, ErrIDReused))
		}
		return nil
	})
	return fresh, err
}

// isSame reports whether a request was made before. Who asks again is within another
// trace, and asks for the same.
func isSame(had string, r *Request) (bool, error) {
	var before Request
	if err := json.Unmarshal([]byte(had), &before); err != nil {
		return false, err
	}
	again := *r
	before.Trace, again.Trace = "", ""
	first, err := json.Marshal(&before, json.Deterministic(true))
	if err != nil {
		return false, err
	}
	second, err := json.Marshal(&again, json.Deterministic(true))
	return bytes.Equal(first, second), err
}

// save writes a receipt and its step down.
func (s Store) save(ctx context.Context, r *Receipt) error {
	state, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.DB.ExecContext(ctx, "UPDATE runs SET step = ?, receipt = ?, changed_at_ms = ? WHERE id = ?", r.Step, string(state), time.Now().UnixMilli(), r.ID)
	return s.DB.Explain(err)
}

// Get returns a run's receipt, whole or not. The run may be named by the id that
// who asked for it knows.
func (s Store) Get(ctx context.Context, id string) (*Receipt, error) {
	return s.GetFor(ctx, id, nil)
}

// GetFor is Get among the runs of the accounts that sees accepts; nil accepts all.
func (s Store) GetFor(ctx context.Context, id string, sees func(account string) bool) (*Receipt, error) {
	_, receipt, err := s.load(ctx, id)
	if err == nil && (sees == nil || sees(receipt.Account)) || err != nil && !errors.Is(err, ErrNotFound) {
		return receipt, err
	}
	own, ok := s.known(ctx, id, sees)
	if !ok {
		return nil, fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	_, receipt, err = s.load(ctx, own)
	return receipt, err
}

// Resolve returns the id of the run that is known as another, the latest if there
// are several, among those of one account if one is named; else the id that it was
// asked about.
func (s Store) Resolve(ctx context.Context, id, account string) string {
	sees := func(of string) bool { return account == "" || of == account }
	if r, err := s.GetFor(ctx, id, sees); err == nil {
		return r.ID
	}
	return id
}

// maxKnown bounds how many runs of one name are looked at.
const maxKnown = 100

// byCallerID finds runs by the id that their caller gave them, the latest first.
const byCallerID = "SELECT id, account FROM runs WHERE receipt ->> '$.knownAs' = ? ORDER BY created_at_ms DESC LIMIT ?"

// KnownAs returns the id of a run as its caller knows it: id itself if there is no other.
func (s Store) KnownAs(ctx context.Context, id string) string {
	var known sql.NullString
	_ = s.DB.QueryRowContext(ctx, "SELECT receipt ->> '$.knownAs' FROM runs WHERE id = ?", id).Scan(&known)
	return cmp.Or(known.String, id)
}

// known finds the latest run that is known as something.
func (s Store) known(ctx context.Context, as string, sees func(account string) bool) (id string, ok bool) {
	rows, err := s.DB.QueryContext(ctx, byCallerID, as, maxKnown)
	if err != nil {
		return "", false
	}
	defer rows.Close() //nolint:errcheck // it was only read
	for rows.Next() {
		var account string
		if rows.Scan(&id, &account) == nil && (sees == nil || sees(account)) {
			return id, true
		}
	}
	return "", false
}

func (s Store) load(ctx context.Context, id string) (*Request, *Receipt, error) {
	var request, receipt string
	err := s.DB.QueryRowContext(ctx, "SELECT request, receipt FROM runs WHERE id = ?", id).Scan(&request, &receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, nil, s.DB.Explain(err)
	}
	var asked Request
	var got Receipt
	if err := errors.Join(json.Unmarshal([]byte(request), &asked), json.Unmarshal([]byte(receipt), &got)); err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", id, err)
	}
	return &asked, &got, nil
}

// unfinished lists the runs that are not over, the oldest first.
func (s Store) unfinished(ctx context.Context) (ids []string, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT id FROM runs WHERE step <> 'done' ORDER BY created_at_ms, id")
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.DB.Explain(err)
		}
		ids = append(ids, id)
	}
	return ids, s.DB.Explain(rows.Err())
}

// Accounts returns the accounts that have runs, in order.
func (s Store) Accounts(ctx context.Context) (accounts []string, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT DISTINCT account FROM runs ORDER BY account")
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports it
	for rows.Next() {
		var account string
		if err := rows.Scan(&account); err != nil {
			return nil, s.DB.Explain(err)
		}
		accounts = append(accounts, account)
	}
	return accounts, s.DB.Explain(rows.Err())
}

// Provisional returns the ids of runs that are over and whose bill is not final,
// the latest first.
func (s Store) Provisional(ctx context.Context, since time.Time) (ids []string, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT id FROM runs WHERE created_at_ms >= ? AND step = ? AND receipt ->> '$.bill.provisional' ORDER BY created_at_ms DESC LIMIT ?",
		since.UnixMilli(), Over, MaxList)
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports it
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.DB.Explain(err)
		}
		ids = append(ids, id)
	}
	return ids, s.DB.Explain(rows.Err())
}

// SetBill writes the bill of a run that is over anew.
func (s Store) SetBill(ctx context.Context, id string, b Bill) error {
	text, err := json.Marshal(&b)
	if err != nil {
		return err
	}
	_, err = s.DB.ExecContext(ctx, "UPDATE runs SET receipt = json_set(receipt, '$.bill', json(?)) WHERE id = ? AND step = ?", string(text), id, Over)
	return s.DB.Explain(err)
}

// Events returns a run's events after the given number.
func (s Store) Events(ctx context.Context, id string, after int64) ([]Event, error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT event FROM run_events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?", id, after, MaxList)
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	return collect[Event](s, rows)
}

// addEvent writes an event down and gives it its number.
func (s Store) addEvent(ctx context.Context, id string, e *Event) error {
	return s.DB.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) + 1 FROM run_events WHERE run = ?", id).Scan(&e.Seq); err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO run_events (run, seq, at_ms, event) VALUES (?, ?, ?, ?)", id, e.Seq, e.At.UnixMilli(), string(text))
		return err
	})
}

func collect[T any](s Store, rows *sql.Rows) (list []T, err error) {
	defer rows.Close()
	for rows.Next() {
		var text string
		var item T
		if err := rows.Scan(&text); err != nil {
			return nil, s.DB.Explain(err)
		}
		if err := json.Unmarshal([]byte(text), &item); err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, s.DB.Explain(rows.Err())
}
