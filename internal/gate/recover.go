package gate

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/atoll-run/atoll/internal/audit"
)

// recover ends the batches that an earlier process did not end: one that is placed
// is finished, another is taken back.
func (g *Gate) recover(ctx context.Context) error {
	for _, b := range g.journal.batches() {
		if b.phase == ended {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := g.recoverOne(b); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) recoverOne(b *batch) error {
	base, err := g.openBase()
	if err != nil {
		return err
	}
	defer base.close()
	a := &applier{Gate: g, b: b, base: base}
	if b.phase == placed {
		err = a.finish()
	} else {
		err = a.takeBack()
	}
	if err == nil {
		g.record(audit.FileEvent{Event: "recovered", Batch: b.id, Files: len(b.steps), Result: string(b.result)})
	}
	return err
}

// prune removes what was kept of the oldest batches, and what belongs to none.
func (g *Gate) prune() error {
	all := g.journal.batches()
	keep := map[string]bool{}
	for _, b := range all[max(0, len(all)-g.limits.Kept):] {
		keep[b.id] = true
	}
	entries, err := os.ReadDir(g.undoDir(""))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !keep[entry.Name()] {
			err = errors.Join(err, os.RemoveAll(g.undoDir(entry.Name())))
		}
	}
	return errors.Join(err, g.journal.compact(keep))
}

// compact drops the records of other batches once there are twice as many.
func (j *journal) compact(keep map[string]bool) error {
	kept := slices.DeleteFunc(slices.Clone(j.records), func(r record) bool { return !keep[r.ID] })
	if len(j.records) < 2*len(kept)+compactFrom {
		return nil
	}
	return j.rewrite(kept)
}
