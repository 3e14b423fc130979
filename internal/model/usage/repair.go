package usage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
)

// Repaired is the result of a repair.
type Repaired struct {
	Damage string `json:"damage"`         // "": there was none, and nothing was changed
	Aside  string `json:"aside"`          // where the damaged journal is now
	Found  int    `json:"found"`          // settled calls that could be read
	Stored int    `json:"stored"`         // those of them that the database did not have
	Open   int    `json:"openCalls"`      // reservations that go on
	Spent  int64  `json:"storedMicroUSD"` // what the stored calls cost
}

// Repair replaces a damaged journal by a new one. The old one is copied
// aside; what can be read of it is stored: settled calls that the database does not
// have, and reservations that were open. It waits for the journal's lock.
func Repair(ctx context.Context, o *Options) (*Repaired, error) {
	why := Check(ctx, o)
	if !errors.Is(why, ErrDamaged) {
		return &Repaired{}, why
	}
	lockFile, err := openLock(o.Dir)
	if err != nil {
		return nil, err
	}
	defer lockFile.Close() //nolint:errcheck // it holds nothing but the lock, which ends with it
	r := &repair{journal: &journal{path: journalPath(o.Dir), lockFile: lockFile}, done: &Repaired{Damage: why.Error()}}
	if err := o.DB.Tx(ctx, func(tx *sql.Tx) error { return r.store(ctx, tx) }); err != nil {
		return nil, o.DB.Explain(err)
	}
	return r.done, r.journal.replace(r.next, r.carried)
}

// repair is one repair. The lock is taken when SQLite's write lock is held, as
// everywhere, and kept until the new journal is in its place.
type repair struct {
	journal *journal
	done    *Repaired
	next    int64 // generation
	carried []byte
}

func (r *repair) store(ctx context.Context, tx *sql.Tx) error {
	if err := r.journal.setLock(ctx); err != nil {
		return err
	}
	at, err := readPos(ctx, tx)
	if err != nil {
		return err
	}
	content, err := r.setAside()
	if err != nil {
		return err
	}
	p := &projection{ctx: ctx, tx: tx, sums: map[scopeKey]*Charge{}}
	open := salvage(content, func(settled *record) {
		r.done.Found++
		if p.takeNew(settled) {
			r.done.Stored++
			r.done.Spent += settled.MicroUSD
		}
	})
	r.done.Open = len(open)
	for _, held := range open {
		r.carried = held.appendTo(r.carried)
	}
	if p.err != nil {
		return p.err
	}
	r.next = max(at.generation, generationOf(content)) + 1
	return p.finish(journalPos{r.next, int64(journalHeader)})
}

// setAside copies the journal and returns what is in it. The file itself keeps
// its name until the new one takes it: processes notice by that.
func (r *repair) setAside() ([]byte, error) {
	content, err := os.ReadFile(r.journal.path)
	if err != nil {
		return nil, fmt.Errorf("journal of usage: %w", err)
	}
	r.done.Aside = fmt.Sprintf("%s.damaged-%s", r.journal.path, time.Now().UTC().Format("20060102-150405.000"))
	return content, writeSynced(r.done.Aside, content)
}

// salvage reads every whole record of a journal, also behind bytes that are none,
// and returns the reservations that no record ends.
func salvage(content []byte, settled func(*record)) map[string]*record {
	open := map[string]*record{}
	for at := min(journalHeader, len(content)); at < len(content); {
		var r record
		size, err := next(content[at:], &r)
		if err != nil {
			at++
			continue
		}
		at += size
		switch r.Kind {
		case kindReserve:
			open[r.ID] = &r
		case kindSettle:
			settled(&r)
			delete(open, r.ID)
		case kindRelease:
			delete(open, r.ID)
		}
	}
	return open
}

// generationOf returns the generation of a journal; 0 if its head cannot be read.
func generationOf(content []byte) int64 {
	h, _ := readHead(bytes.NewReader(content))
	return h.generation
}
