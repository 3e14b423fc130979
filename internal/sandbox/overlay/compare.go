package overlay

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxCompare is up to which size files are compared byte by byte. Longer ones of
// one size count as modified.
const maxCompare = 1 << 30

// file is one file, link or other entry that is no directory.
type file struct {
	dir  *os.File
	name string
	st   *unix.Stat_t
	at   string // its path for the sandbox
	from string // its path in the base, if it is the base's and was moved
}

func (f file) format() uint32 { return f.st.Mode & unix.S_IFMT }

// compare reports how a file differs from what the base has in its place.
func (r *reader) compare(f file, here *os.File) error {
	if r.appliedSame(f) {
		return nil
	}
	old, err := baseStat(here, f.name)
	if err != nil {
		return r.unseen(f.at, f.st.Mode, err)
	}
	c := Change{Path: f.at, From: f.from, Kind: Added, Mode: fileMode(f.st.Mode), Size: f.st.Size}
	switch {
	case f.from != "":
		c.Kind = Renamed
	case old != nil:
		c.Kind, c.OldMode = Modified, fileMode(old.Mode)
	}
	if old != nil && old.Mode&unix.S_IFMT != f.format() {
		c.Kind = Replaced
	}
	if err := r.describe(&c, f, old, here); err != nil {
		return r.unreadable(c, err)
	}
	if c.Kind != "" {
		err = r.emit(c)
	}
	if err == nil && c.Kind == Replaced && old.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = r.deletedIn(here, f.name, f.at)
	}
	return err
}

// describe completes a change by the type of the file. It empties the kind of
// one that is no change.
func (r *reader) describe(c *Change, f file, old *unix.Stat_t, here *os.File) error {
	switch f.format() {
	case unix.S_IFREG:
		return r.describeFile(c, f, old, here)
	case unix.S_IFLNK:
		return describeLink(c, f, here)
	}
	c.Kind, c.Note = Special, "it is a "+specialName(f.format())
	return nil
}

func specialName(format uint32) string {
	switch format {
	case unix.S_IFIFO:
		return "named pipe"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

func (r *reader) describeFile(c *Change, f file, old *unix.Stat_t, here *os.File) error {
	if r.tree.Kind == Kernel && f.from == "" {
		if err := r.tree.Marks.checkFile(f.dir, f.name); err != nil {
			return err
		}
	}
	if shown := r.hidden[f.at]; shown != "" {
		if sum, err := sumAt(f.dir, f.name); err != nil || sum == shown {
			c.Kind = ""
			return err
		}
	}
	if c.Kind == Replaced || old == nil {
		return nil
	}
	same, err := sameContent(f, here, old)
	switch {
	case err != nil || !same:
		return err
	case old.Mode&0o7777 == f.st.Mode&0o7777:
		c.Kind = ""
	default:
		c.Kind = Mode
	}
	return nil
}

func describeLink(c *Change, f file, here *os.File) (err error) {
	if c.Link, err = linkAt(f.dir, f.name); err != nil || c.Kind == Replaced {
		return err
	}
	if c.Kind == Modified {
		old, err := linkAt(here, f.name)
		if err == nil && old == c.Link {
			c.Kind = ""
			return nil
		}
	}
	c.Kind = Link
	return nil
}

// unreadable reports a file that could not be examined. One that is gone by now
// is no change; the next walk sees what has come of it.
func (r *reader) unreadable(c Change, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c.Kind, c.Note = Special, "it cannot be read: "+err.Error()
	if errors.Is(err, errMark) {
		c.Note = errMark.Error()
	}
	return r.emit(c)
}

// sameContent compares a file with the base's of the same name.
func sameContent(f file, here *os.File, old *unix.Stat_t) (bool, error) {
	if f.st.Size != old.Size || old.Size > maxCompare {
		return false, nil
	}
	one, err := openFileAt(f.dir, f.name)
	if err != nil {
		return false, err
	}
	defer one.Close()
	two, err := openFileAt(here, f.name)
	if err != nil {
		return false, nil // whatever is there now, it is not the same
	}
	defer two.Close()
	return sameBytes(one, two)
}

func sameBytes(a, b io.Reader) (bool, error) {
	left, right := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, left)
		m, errB := io.ReadFull(b, right)
		if n != m || !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if isEnd(errA) || isEnd(errB) {
			return isEnd(errA) && isEnd(errB), nil
		}
		if err := errors.Join(errA, errB); err != nil {
			return false, err
		}
	}
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
