package files

import (
	"errors"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

// nextNames returns the next names of a directory, or none at its end.
func (d *dir) nextNames() ([]string, error) {
	c := buffer.Get()
	defer buffer.Put(c)
	n, err := unix.ReadDirent(d.fd, c[:])
	if err != nil || n <= 0 {
		return nil, fileError(err)
	}
	_, _, names := unix.ParseDirent(c[:n], -1, nil)
	if len(names) == 0 { // only "." and ".."
		return d.nextNames()
	}
	return names, nil
}

// names returns the first limit names after a name, in order, and whether there are
// more. It holds about twice limit names at most.
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
			err = b.checkTime()
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

// list sends the entries of a directory.
func (c *Call) list(f *wire.File) error {
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
		entries := &batch[wire.FileEntry]{w: c.Stream, kind: wire.FrameEntries}
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

// statGroup is how many names are examined in one slot.
const statGroup = 64

// sendEntries sends the attributes of those names that still exist.
func (d *dir) sendEntries(names []string, entries *batch[wire.FileEntry]) error {
	found := make([]wire.FileEntry, 0, len(names))
	err := d.files.do(func() error {
		for _, name := range names {
			info, err := statAt(d.fd, name)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return fileError(err)
			}
			found = append(found, info.entry(name))
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

// openDir opens the directory at a path for reading.
func (c *Call) openDir(p *wire.RootedPath) (*dir, error) {
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

// walkEntry is a file that a walk has found.
type walkEntry struct {
	location // its directory is closed by the walk
	path     string
	info     *fileInfo
}

// open opens an entry for reading, unless it is refused, and updates its attributes.
func (g *Server) open(n *walkEntry, refuse func(*fileInfo) error) (fd int, err error) {
	err = g.do(func() error {
		var now *fileInfo
		if fd, now, err = n.openFile(refuse); err == nil {
			n.info = now
		}
		return err
	})
	return fd, err
}

// walker visits everything beneath a directory, in the order of names.
type walker struct {
	files   *Server
	budget  *budget
	exclude globs
	visit   func(*walkEntry) error // errSkip skips a directory's content
	refused func(path string, err error)
}

// errSkip skips the content of a directory.
var errSkip = errors.New("skip")

// walk visits everything in a directory, whose path is prefix.
func (w *walker) walk(d *dir, prefix string, depth int) error {
	if depth > w.budget.depth {
		return refuse(wire.CodeTooLarge)
	}
	names, more, err := d.names("", w.budget.entries+1, w.budget)
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

// step visits one file and, if it is a directory, its content.
func (w *walker) step(n *walkEntry, depth int) error {
	if err := w.budget.spend(); err != nil {
		return err
	}
	err := w.files.do(func() (err error) { n.info, err = statAt(n.dir.fd, n.name); return err })
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
	if n.info.kind() != wire.KindDir || n.info.mount {
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

// walk sends the entries of a directory tree.
func (c *Call) walk(f *wire.File) error {
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
		entries := &batch[wire.FileEntry]{w: c.Stream, kind: wire.FrameEntries}
		end := &totals{}
		w := &walker{files: c.files, budget: newBudget(scan), exclude: exclude, refused: end.refused, visit: func(n *walkEntry) error {
			if n.info.kind() == wire.KindDir {
				end.Dirs++
			} else {
				end.Files++
			}
			entry := n.info.entry(n.path)
			return entries.add(&entry)
		}}
		w.budget.gone = c.stopWhenHostLeaves()
		err = w.walk(d, "", 1)
		return c.finishScan(end, err, entries.flush)
	})
}

// finishScan sends the result of an operation. A limit that ended it is part of the
// result, not an error.
func (c *Call) finishScan(end *totals, err error, flush func() error) error {
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
