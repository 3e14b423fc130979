package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// reached is how far a path exists in the base.
type reached struct {
	path string   // the deepest that exists, or the first that does not
	dir  *os.File // the directory of path, open
	st   *unix.Stat_t
	dirs []step // the directories on the way
}

type step struct {
	path string
	id   hostpath.ID
}

// reach walks down to rel by descriptor, and stops at what does not exist or is
// no directory.
func reach(root *os.File, rel string) (reached, error) {
	if !isPath(rel) {
		return reached{}, fmt.Errorf("%.300q: %w", rel, hostpath.ErrEscapes)
	}
	dir, err := openDirAt(root, ".")
	if err != nil {
		return reached{}, err
	}
	r := reached{dir: dir}
	for names := strings.Split(rel, "/"); ; names = names[1:] {
		r.path = path.Join(r.path, names[0])
		st, err := statAt(r.dir, names[0])
		if errors.Is(err, fs.ErrNotExist) {
			return r, nil
		} else if err != nil {
			return r, errors.Join(fmt.Errorf("%.300q: %w", r.path, err), r.dir.Close())
		}
		if len(names) == 1 || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			r.st = &st
			return r, nil
		}
		next, err := openDirAt(r.dir, names[0])
		closeFile(r.dir)
		if err != nil {
			return r, fmt.Errorf("%.300q: %w", r.path, err)
		}
		r.dir = next
		r.dirs = append(r.dirs, step{r.path, hostpath.ID{Device: st.Dev, Inode: st.Ino}})
	}
}

// AsBegun reports whether the base has at a path what the agent began with: the
// same file, or nothing if there was nothing. A change of the content, the mode
// or a directory above since then makes it false.
func (t *Tree) AsBegun(rel string) (bool, error) {
	root, err := t.openBase()
	if err != nil {
		return false, err
	}
	defer root.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		return false, err
	}
	return t.asBegun(root, n, rel)
}

func (t *Tree) asBegun(root *os.File, n *notes, rel string) (bool, error) {
	r, err := reach(root, rel)
	if err != nil {
		return false, err
	}
	defer closeFile(r.dir)
	var top unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &top); err != nil {
		return false, err
	}
	for _, above := range r.dirs {
		if id, ok := n.dirID(above.path); !ok || !t.sameDir(id, above.id, top.Dev) {
			return false, nil
		}
	}
	noted, was, err := n.entry(r.path)
	if err != nil || r.st == nil || !was {
		return err == nil && r.st == nil && !was, err
	}
	return t.same(noted, r)
}

// sameDir reports whether a directory is the noted one. Its device must be that
// of the base, whatever number the kernel gave it in this boot.
func (t *Tree) sameDir(noted, now hostpath.ID, device uint64) bool {
	return t.Foreign || noted.Inode == now.Inode && now.Device == device
}

// same compares what was noted with what is there.
func (t *Tree) same(noted entry, r reached) (bool, error) {
	now := entryOf(r.st)
	if noted.isDir() && now.isDir() {
		return noted.Ino == now.Ino || t.Foreign, nil
	}
	if noted.Mode != now.Mode || noted.Size != now.Size || noted.Mtime != now.Mtime {
		return false, nil
	}
	if !t.Foreign && (noted.Ino != now.Ino || noted.Ctime != now.Ctime) {
		return false, nil
	}
	switch {
	case noted.isLink():
		text, err := linkAt(r.dir, path.Base(r.path))
		return text == noted.Link, err
	case noted.Sum != "":
		sum, err := sumAt(r.dir, path.Base(r.path))
		return sum == noted.Sum, err
	}
	return true, nil
}

// linesFor returns what is in the base at rel now, and the directories above it
// that are not the noted ones.
func (t *Tree) linesFor(root, above *os.File, n *notes, rel string) ([]appliedLine, error) {
	r, err := reach(root, rel)
	if err != nil {
		return nil, err
	}
	defer closeFile(r.dir)
	var lines []appliedLine
	for _, above := range r.dirs {
		if id, ok := n.dirID(above.path); !ok || id != above.id {
			lines = append(lines, appliedLine{Path: quoted(above.path), Entry: &entry{Mode: unix.S_IFDIR | 0o755, Ino: above.id.Inode}, ID: &above.id})
		}
	}
	if r.path != rel {
		lines = append(lines, appliedLine{Path: quoted(rel)}) // in place of an earlier line
	}
	line, err := lineOf(r)
	if err == nil {
		line.Above, err = t.noteAbove(above, r)
	}
	return append(lines, line), err
}

func lineOf(r reached) (appliedLine, error) {
	line := appliedLine{Path: quoted(r.path)}
	if r.st == nil {
		return line, nil
	}
	e := entryOf(r.st)
	line.Entry = &e
	var err error
	switch {
	case e.isDir():
		line.ID = &hostpath.ID{Device: r.st.Dev, Inode: r.st.Ino}
	case e.isLink():
		e.Link, err = linkAt(r.dir, path.Base(r.path))
	case e.isRegular():
		e.Sum, err = sumAt(r.dir, path.Base(r.path))
	}
	return line, err
}
