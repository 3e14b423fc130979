package guest

import (
	"errors"
	"path"
	"slices"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// nextNames returns some names of a directory, or none at its end.
func (d *dir) nextNames() ([]string, error) {
	c := buffer.Get()
	defer buffer.Put(c)
	n, err := unix.ReadDirent(d.fd, c[:])
	if err != nil || n <= 0 {
		return nil, fileError(err)
	}
	_, _, names := unix.ParseDirent(c[:n], -1, nil)
	if len(names) == 0 { // nothing but itself and the one above
		return d.nextNames()
	}
	return names, nil
}

// names returns the first max names that follow after, in order, and whether
// there are more. However many there are, it holds about twice max of them.
func (d *dir) names(after string, limit int, b *budget) (found []string, more bool, err error) {
	cut := func() {
		slices.Sort(found)
		if len(found) > limit {
			found, more = found[:limit], true
		}
	}
	for {
		var some []string
		err := d.files.do(func() (err error) { some, err = d.nextNames(); return err })
		if err == nil {
			err = b.inTime()
		}
		if err != nil {
			return nil, false, err
		}
		if len(some) == 0 {
			cut()
			return found, more, nil
		}
		for _, name := range some {
			if name > after {
				found = append(found, name)
			}
		}
		if len(found) > 2*limit+1024 {
			cut()
		}
	}
}

// fileList sends the names in a directory.
func (c *fileCall) fileList(f *wire.File) error {
	return wire.WithPart(f.Scan, func(scan *wire.FileScan) error {
		b := newBudget(scan)
		b.gone = c.stopWhenHostLeaves()
		d, err := c.openDir(&f.RootedPath)
		if err != nil {
			return err
		}
		defer d.release()
		names, more, err := d.names(string(scan.After), min(b.entries, wire.MaxEntries), b)
		if err != nil {
			return err
		}
		entries := &batch[wire.FileEntry]{w: c.stream, kind: wire.FrameEntries}
		end := totals{}
		if more {
			end.Cut = wire.CodeTooLarge
		}
		for group := range slices.Chunk(names, statGroup) {
			if err := d.sendEntries(group, entries); err != nil {
				return err
			}
		}
		if err := entries.flush(); err != nil {
			return err
		}
		return c.result(end.FileEnd)
	})
}

// statGroup is how many names are looked at in one go.
const statGroup = 64

// sendEntries tells about names that are still there.
func (d *dir) sendEntries(names []string, entries *batch[wire.FileEntry]) error {
	found := make([]wire.FileEntry, 0, len(names))
	err := d.files.do(func() error {
		for _, name := range names {
			facts, err := statAt(d.fd, name)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return fileError(err)
			}
			found = append(found, facts.entry(name))
		}
		return nil
	})
	for i := range found {
		if err == nil {
			err = entries.add(&found[i])
		}
	}
	return err
}

// openDir opens the directory at a place for reading.
func (c *fileCall) openDir(p *wire.RootedPath) (*dir, error) {
	var d *dir
	err := c.files.do(func() error {
		s, err := c.files.locate(p)
		if err != nil {
			return err
		}
		defer s.close()
		d, err = s.openDir()
		return err
	})
	return d, err
}

// walkEntry is a file that a walk has come to.
type walkEntry struct {
	location // whose directory belongs to the walk
	path     string
	facts    *fileInfo
}

// open opens a node for reading, and looks at it anew.
func (g *fileServer) open(n *walkEntry) (fd int, err error) {
	err = g.do(func() error {
		var now *fileInfo
		if fd, now, err = n.openRegular(); err == nil {
			n.facts = now
		}
		return err
	})
	return fd, err
}

// walker visits what is beneath a directory, in order of names.
type walker struct {
	files   *fileServer
	bounds  *budget
	exclude globs
	visit   func(*walkEntry) error // errSkip: not what is in it
	refused func(path string, err error)
}

// errSkip leaves out what is in a directory.
var errSkip = errors.New("skip")

// walk visits everything in a directory, whose path is prefix.
func (w *walker) walk(d *dir, prefix string, depth int) error {
	if depth > w.bounds.depth {
		return refuse(wire.CodeTooLarge)
	}
	names, more, err := d.names("", w.bounds.entries+1, w.bounds)
	if err != nil {
		return err
	}
	for _, name := range names {
		n := &walkEntry{location{dir: d, name: name}, path.Join(prefix, name), nil}
		if err := w.step(n, depth); err != nil {
			return err
		}
	}
	if more {
		return refuse(wire.CodeTooLarge)
	}
	return nil
}

// step visits one file, and what is in it.
func (w *walker) step(n *walkEntry, depth int) error {
	if err := w.bounds.spend(); err != nil {
		return err
	}
	err := w.files.do(func() (err error) { n.facts, err = statAt(n.dir.fd, n.name); return err })
	switch {
	case errors.Is(err, unix.ENOENT): // no longer there
		return nil
	case err != nil:
		w.refused(n.path, err)
		return nil
	case len(n.path) > maxReportedPath:
		w.refused(n.path, refuse(wire.CodeTooLarge))
		return nil
	case w.exclude.match(n.path):
		return nil
	}
	if err := w.visit(n); errors.Is(err, errSkip) {
		return nil
	} else if err != nil {
		return err
	}
	if n.facts.kind() != wire.KindDir || n.facts.mount {
		return nil
	}
	return w.enter(n, depth)
}

func (w *walker) enter(n *walkEntry, depth int) error {
	var below *dir
	err := w.files.do(func() (err error) { below, err = n.openDir(); return err })
	if err != nil {
		w.refused(n.path, err)
		return nil
	}
	defer below.release()
	return w.walk(below, n.path, depth+1)
}

// fileWalk sends everything beneath a directory.
func (c *fileCall) fileWalk(f *wire.File) error {
	return wire.WithPart(f.Scan, func(scan *wire.FileScan) error {
		exclude, err := newGlobs(scan.Exclude)
		if err != nil {
			return err
		}
		d, err := c.openDir(&f.RootedPath)
		if err != nil {
			return err
		}
		defer d.release()
		entries := &batch[wire.FileEntry]{w: c.stream, kind: wire.FrameEntries}
		end := &totals{}
		w := &walker{files: c.files, bounds: newBudget(scan), exclude: exclude, refused: end.refused, visit: func(n *walkEntry) error {
			if n.facts.kind() == wire.KindDir {
				end.Dirs++
			} else {
				end.Files++
			}
			entry := n.facts.entry(n.path)
			return entries.add(&entry)
		}}
		w.bounds.gone = c.stopWhenHostLeaves()
		err = w.walk(d, "", 1)
		return c.finishScan(end, err, entries.flush)
	})
}

// finishScan ends an operation that may be cut short by its limits.
func (c *fileCall) finishScan(end *totals, err error, flush func() error) error {
	if code, ok := limitHit(err); ok {
		end.Cut, err = code, nil
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	return c.result(end.FileEnd)
}
