package overlay

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// IsAbove reports whether the sandbox has something of its own at a path, not what the
// base shows there.
func (t *Tree) IsAbove(rel string) (bool, error) {
	above, err := hostpath.OpenDir(t.above())
	if err != nil {
		return false, err
	}
	defer above.Close()
	r, err := reach(above, rel)
	if err != nil {
		return false, err
	}
	closeFile(r.dir)
	return r.path == rel && r.st != nil, nil
}

// noteAbove returns what the sandbox has at a path if that is the same as what
// the base has: as long as it stays so, a later edit of the host is no change of
// the sandbox.
func (t *Tree) noteAbove(above *os.File, r reached) (*aboveNote, error) {
	dir, err := hostpath.OpenBeneath(above, path.Dir(r.path), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing of the sandbox is there, or a link
	}
	defer dir.Close()
	st, err := statAt(dir, path.Base(r.path))
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.st == nil && t.Kind == Copy,
		err == nil && r.st == nil && t.Kind == Kernel && isWhiteout(&st):
		return &aboveNote{Gone: true}, nil
	case err != nil || r.st == nil || time.Since(time.Unix(0, st.Ctim.Nano())) < tick:
		return nil, nil //nolint:nilerr // not the same, or not sure to show a later change
	}
	f := file{dir: dir, name: path.Base(r.path), st: &st}
	same, err := f.sameAs(r)
	if err != nil || !same {
		return nil, nil //nolint:nilerr // what cannot be read is not the same
	}
	return &aboveNote{Entry: entryOf(&st)}, nil
}

// sameAs compares a file or link with what the base has.
func (f file) sameAs(r reached) (bool, error) {
	switch {
	case f.format() != r.st.Mode&unix.S_IFMT:
		return false, nil
	case f.format() == unix.S_IFLNK:
		one, err := linkAt(f.dir, f.name)
		two, err2 := linkAt(r.dir, f.name)
		return one == two, errors.Join(err, err2)
	case f.format() == unix.S_IFREG && (f.st.Mode&0o111 != 0) == (r.st.Mode&0o111 != 0):
		return sameContent(f, r.dir, r.st)
	}
	return false, nil
}

// appliedSame reports whether a file is still what was the same as the base's.
func (r *reader) appliedSame(f file) bool {
	line, ok := r.applied[f.at]
	return ok && line.Above != nil && !line.Above.Gone && line.Above.Entry == entryOf(f.st)
}

// appliedGone reports whether a deletion was applied already. What the base has
// there now is the host's and new.
func (r *reader) appliedGone(at string) bool {
	line, ok := r.applied[at]
	return ok && line.Above != nil && line.Above.Gone
}
