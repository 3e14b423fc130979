package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// ConflictError means that files of the host are not what they were: nothing was
// applied.
type ConflictError struct{ Paths []string }

func (e *ConflictError) Error() string {
	const shown = 5
	text := fmt.Sprintf("%q", e.Paths[:min(shown, len(e.Paths))])
	if more := len(e.Paths) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "changed on the host meanwhile, nothing was applied: " + text
}

// applier applies one batch.
type applier struct {
	*Gate
	b    *batch
	base *baseDir
	left []string // paths that something else changed in between
}

// apply applies a batch: all of it, or nothing.
func (g *Gate) apply(ctx context.Context, b *batch) error {
	base, err := g.openBase()
	if err != nil {
		return err
	}
	defer base.close()
	if err := os.Mkdir(g.undoDir(b.id), dirMode); err != nil {
		return err
	}
	b.new = map[int]inode{}
	if err := g.journal.add(record{Phase: begun, ID: b.id, By: b.by, Undoes: b.undoes, Steps: b.steps}); err != nil {
		return errors.Join(err, os.Remove(g.undoDir(b.id)))
	}
	g.testHook("begun")
	a := &applier{Gate: g, b: b, base: base}
	if err := a.placeAll(ctx); err != nil {
		return errors.Join(err, a.takeBack())
	}
	return a.finish()
}

// placeAll does the steps, wave by wave, and makes them durable.
func (a *applier) placeAll(ctx context.Context) error {
	for from := 0; from < len(a.b.steps); {
		to := from
		for to < len(a.b.steps) && a.b.steps[to].Wave == a.b.steps[from].Wave {
			to++
		}
		if err := a.placeWave(ctx, from, to); err != nil {
			return err
		}
		from = to
	}
	if err := errors.Join(a.copyOld(), a.syncDirs()); err != nil {
		return err
	}
	a.testHook("synced")
	return a.journal.add(record{Phase: placed, ID: a.b.id})
}

func (a *applier) placeWave(ctx context.Context, from, to int) error {
	fresh, err := a.writeAll(ctx, from, to)
	if err != nil {
		return err
	}
	if len(fresh) > 0 {
		if err := a.journal.add(record{Phase: ready, ID: a.b.id, New: fresh}); err != nil {
			return err
		}
		maps.Copy(a.b.new, fresh)
		a.testHook("ready")
	}
	for n := from; n < to; n++ {
		if err := a.placeOne(n); err != nil {
			return err
		}
		a.testHook("placed one")
	}
	return nil
}

// writers is how many files are written at a time. The file system brings files that
// are synced together to disk together.
const writers = 16

// writeAll writes the new files of a wave under temporary names, complete and on disk.
func (a *applier) writeAll(ctx context.Context, from, to int) (map[int]inode, error) {
	fresh := map[int]inode{}
	var mu sync.Mutex // guards fresh, and lets one goroutine at a time call testHook
	var all errgroup.Group
	all.SetLimit(writers)
	for n := from; n < to; n++ {
		s := &a.b.steps[n]
		if s.After == nil || s.After.Type == typeDir {
			continue
		}
		all.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			id, err := a.writeOne(n)
			if err != nil {
				return fmt.Errorf("%q: %w", s.Path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[n] = id
			a.testHook("written")
			return nil
		})
	}
	return fresh, all.Wait()
}

func (a *applier) writeOne(n int) (inode, error) {
	dir, temp, err := a.base.parent(a.b.tempPath(n))
	if err != nil {
		return inode{}, err
	}
	defer dir.Close()
	return a.writeNew(dir, temp, &a.b.steps[n])
}

// placeOne does one step, if the host's file is still what it was.
func (a *applier) placeOne(n int) error {
	p, err := a.openPlace(n)
	if err != nil {
		return errors.Join(&ConflictError{[]string{a.b.steps[n].Path}}, err)
	}
	defer p.close()
	if p.s.isDir() {
		return p.placeDir()
	}
	now, err := look(p.dir, p.leaf)
	if err != nil || !now.same(p.s.Before, false) {
		return p.conflict(err)
	}
	a.testHook("looked")
	switch {
	case p.s.After == nil:
		return p.remove()
	case p.s.Before == nil:
		return p.create()
	}
	return p.exchange()
}

// isGone reports whether a directory is not there, or is another file now.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// syncDirs makes the names in all directories of the batch durable.
func (a *applier) syncDirs() error {
	dirs := map[string]bool{}
	for i := range a.b.steps {
		dirs[path.Dir(a.b.steps[i].Path)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		dir, _, err := a.base.parent(path.Join(name, "x"))
		if isGone(err) {
			continue // it was removed; the directory above has that
		}
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
