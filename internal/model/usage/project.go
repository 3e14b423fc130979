package usage

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"time"
)

// journalPos is a position in a generation of the journal.
type journalPos struct{ generation, position int64 }

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (l *Ledger) storedPos(ctx context.Context) (journalPos, error) {
	at, err := readPos(ctx, l.options.DB)
	return at, l.options.DB.Explain(err)
}

func readPos(ctx context.Context, q querier) (at journalPos, err error) {
	err = q.QueryRowContext(ctx, "SELECT generation, position FROM usage_journal WHERE one = 1").Scan(&at.generation, &at.position)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// in returns where to go on reading a journal of a generation. A newer one was
// begun when all of the older was stored.
func (at journalPos) in(generation int64) int64 {
	if at.generation == generation {
		return at.position
	}
	return int64(journalHeader)
}

// background stores settled calls until the ledger is closed.
func (l *Ledger) background(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.options.ProjectEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		err := l.flush(ctx, false)
		l.setBroken(err)
		if err != nil {
			l.options.Logger.Warn("settled calls could not be stored; they are kept in the journal", "error", err)
		}
	}
}

// setBroken sets or clears the damage of the journal. While it is set nothing is
// reserved, because costs would not be counted.
func (l *Ledger) setBroken(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken = nil; errors.Is(err, ErrDamaged) {
		l.broken = err
	}
}

// Flush stores everything that is settled, so that queries of SQLite see it.
func (l *Ledger) Flush(ctx context.Context) error { return l.flush(ctx, true) }

// flush syncs and stores the journal. Unless everything is wanted, a process
// that has read nothing new does nothing.
func (l *Ledger) flush(ctx context.Context, everything bool) error {
	l.mu.Lock()
	file, lag, size, broken := l.journal.file, l.lag(), l.journal.position, l.broken
	generation := l.journal.head.generation
	l.mu.Unlock()
	if lag == 0 && !everything && broken == nil {
		return nil
	}
	info, err := file.Stat()
	if err == nil {
		err = file.Sync()
	}
	if err != nil && !errors.Is(err, os.ErrClosed) { // closed: it was replaced
		return err
	}
	synced := journalPos{generation: generation}
	if err == nil {
		synced.position = info.Size()
	}
	if err := l.project(ctx, synced); err != nil {
		return err
	}
	if size < l.rotateAt {
		return nil
	}
	return l.rotate(ctx)
}

// project stores what the journal holds beyond what is stored already, in one
// transaction with the position that it reached. Any process may do it. It stores nothing
// beyond what is on the disk: the database must never be ahead of the journal.
func (l *Ledger) project(ctx context.Context, synced journalPos) error {
	var at journalPos
	err := l.options.DB.Tx(ctx, func(tx *sql.Tx) error {
		stored, err := readPos(ctx, tx)
		if err != nil {
			return err
		}
		file, head, err := openHead(l.journal.path)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		to, err := syncedSize(file, head, synced)
		if err != nil {
			return err
		}
		at = stored
		from := stored.in(head.generation)
		if head.generation < stored.generation || to < from {
			return checkFile(l.journal.path, stored)
		}
		p := &projection{ctx: ctx, tx: tx, sums: map[scopeKey]*Charge{}}
		end, err := readRecords(file, from, to, p.take)
		if err = errors.Join(err, p.err); err != nil {
			return err
		}
		if at = (journalPos{head.generation, end}); at == stored {
			return nil
		}
		return p.finish(at)
	})
	if err == nil {
		l.mu.Lock()
		l.stored = at
		l.mu.Unlock()
	}
	return err
}

// syncedSize is how much of a journal is on the disk. If it is not the one that
// was synced a moment ago, it is synced now.
func syncedSize(file *os.File, h head, synced journalPos) (int64, error) {
	if h.generation == synced.generation && synced.position > 0 {
		return synced.position, nil
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), file.Sync()
}

// rotate replaces a large journal. SQLite's write lock keeps others from
// storing the same records out of the old file and the new.
func (l *Ledger) rotate(ctx context.Context) error {
	durable, err := l.checkpoint(ctx)
	if err != nil || durable == (journalPos{}) {
		return err
	}
	return l.options.DB.Tx(ctx, func(tx *sql.Tx) error {
		at, err := readPos(ctx, tx)
		if err != nil || at != durable {
			return err // another process stored more in between: the next time, then
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := l.lock(ctx); err != nil {
			return err
		}
		defer l.journal.unlock()
		if at.generation != l.journal.head.generation {
			return nil // another process was faster
		}
		return l.replaceJournal(at)
	})
}

// checkpoint puts on the disk what SQLite holds, and returns how far that goes:
// the journal before that may be removed afterwards.
func (l *Ledger) checkpoint(ctx context.Context) (journalPos, error) {
	at, err := l.storedPos(ctx)
	if err != nil {
		return journalPos{}, err
	}
	var busy, log, moved int
	err = l.options.DB.QueryRowContext(ctx, "PRAGMA wal_checkpoint(FULL)").Scan(&busy, &log, &moved)
	if err != nil || busy != 0 {
		return journalPos{}, l.options.DB.Explain(err)
	}
	return at, nil
}

// replaceJournal begins a new generation; all locks are held.
func (l *Ledger) replaceJournal(at journalPos) error {
	var carried []byte
	for _, held := range l.state.open {
		carried = held.appendTo(carried)
	}
	waiting := make([]byte, l.journal.position-at.position)
	if _, err := l.journal.file.ReadAt(waiting, at.position); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := l.journal.replace(at.generation+1, append(carried, waiting...)); err != nil {
		return err
	}
	return l.journal.catchUp(l.state)
}

// total returns what is spent and held of a key; the journal's lock is held, so
// the state is complete up to journal.position.
func (l *Ledger) total(ctx context.Context, k scopeKey) (*total, error) {
	if t := l.state.loaded[k]; t != nil {
		return t, nil
	}
	spent, at, err := l.readTotal(ctx, k)
	if err != nil {
		return nil, err
	}
	if from := at.in(l.journal.head.generation); from > l.journal.position {
		return nil, damaged(l.journal.path, "ends at byte %d, before byte %d, up to which the database follows it", l.journal.position, from)
	}
	// SQLite is behind the journal: add what it does not have yet.
	_, err = readRecords(l.journal.file, at.in(l.journal.head.generation), l.journal.position, func(r *record) {
		for _, key := range r.keys() {
			switch {
			case key != k:
			case r.Kind == kindSettle:
				spent.add(r.charge())
			case r.Kind == kindCorrect:
				spent.add(r.correction())
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return l.state.load(k, spent), nil
}

// readTotal reads a key's sums and how far they go, at one moment.
func (l *Ledger) readTotal(ctx context.Context, k scopeKey) (spent Charge, at journalPos, err error) {
	t := &spent.Tokens
	err = l.options.DB.QueryRowContext(ctx, `SELECT ifnull(j.generation, 0), ifnull(j.position, 0), ifnull(micro_usd, 0), ifnull(calls, 0),
		ifnull(unpriced, 0), ifnull(estimated, 0), ifnull(input, 0), ifnull(cached_input, 0), ifnull(cache_write, 0), ifnull(output, 0), ifnull(reasoning, 0)
		FROM (SELECT 1) LEFT JOIN usage_journal j LEFT JOIN usage_totals t ON t.scope = ? AND t.key = ?`, string(k.scope), k.key).
		Scan(&at.generation, &at.position, &spent.MicroUSD, &spent.Calls, &spent.Unpriced, &spent.Estimated,
			&t.Input, &t.CachedInput, &t.CacheWrite, &t.Output, &t.Reasoning)
	return spent, at, l.options.DB.Explain(err)
}
