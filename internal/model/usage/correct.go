package usage

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Billed is the cost of one call by its bill. At is the call's own time, as it is stored.
type Billed struct {
	ID       string
	At       time.Time
	MicroUSD int64
}

// Correct replaces our figures by those of bills. Sums and budgets change with
// them. Doing it again changes nothing; unknown calls are left out. It returns how many figures changed.
func (l *Ledger) Correct(ctx context.Context, billed []Billed) (changed int, err error) {
	if err := l.Flush(ctx); err != nil {
		return 0, err
	}
	err = l.options.DB.Tx(ctx, func(tx *sql.Tx) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := l.lock(ctx); err != nil {
			return err
		}
		defer l.journal.unlock()
		waiting, err := l.waitingCorrections(ctx, tx)
		if err != nil {
			return err
		}
		var corrections []*record
		for _, b := range billed {
			c, err := correction(ctx, tx, b, waiting)
			if err != nil {
				return err
			}
			if c != nil {
				corrections = append(corrections, c)
			}
		}
		changed = len(corrections)
		return l.write(corrections...)
	})
	if err != nil {
		return 0, err
	}
	return changed, l.Flush(ctx)
}

// waitingCorrections returns those in the journal that SQLite does not have yet.
func (l *Ledger) waitingCorrections(ctx context.Context, tx *sql.Tx) (map[string]int64, error) {
	at, err := readPos(ctx, tx)
	if err != nil {
		return nil, err
	}
	waiting := map[string]int64{}
	_, err = readRecords(l.journal.file, at.in(l.journal.head.generation), l.journal.position, func(r *record) {
		if r.Kind == kindCorrect {
			waiting[r.ID] = r.MicroUSD
		}
	})
	return waiting, err
}

// correction is the record that corrects one call, nil if nothing changes.
func correction(ctx context.Context, tx *sql.Tx, b Billed, waiting map[string]int64) (*record, error) {
	r := &record{Kind: kindCorrect, ID: b.ID, AtMs: b.At.UnixMilli(), MicroUSD: b.MicroUSD}
	s := &r.Subject
	var billed sql.NullInt64
	var priced bool
	err := tx.QueryRowContext(ctx, "SELECT run, session, agent, account, day, cost, billed, priced FROM usage_calls WHERE at_ms = ? AND id = ?", r.AtMs, r.ID).
		Scan(&s.Run, &s.Session, &s.Agent, &s.Account, &r.Day, &r.Was, &billed, &priced)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := billed.Valid
	if known {
		r.Was = billed.Int64
	}
	if was, ok := waiting[r.ID]; ok {
		r.Was, known, priced = was, true, true
	}
	if known && r.Was == r.MicroUSD {
		return nil, nil
	}
	if !priced {
		r.Flags |= flagUnpriced
	}
	return r, nil
}
