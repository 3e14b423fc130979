package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	// hoistPrefix begins the names of directories on their way to removal.
	hoistPrefix = ".atoll-removed-"
	// maxRefills is how often a directory may be filled again while it is being
	// removed before we give up.
	maxRefills = 64
)

// removeTree removes the entry called name from parent with everything below.
//
// An agent may have nested directories far deeper than there are descriptors,
// and may still be moving them around. So nothing is walked down: files of a
// directory are removed, its directories are hoisted up into parent and removed
// from there, one after the other. At most two descriptors are open, and every
// operation is on a single name in one of them.
func removeTree(ctx context.Context, parent *os.File, name string) error {
	for todo := []pendingRemoval{{name: name}}; len(todo) > 0; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("remove %s: %w", printable(name), err)
		}
		last := &todo[len(todo)-1]
		hoisted, gone, err := last.shrink(parent)
		switch {
		case err != nil:
			return fmt.Errorf("remove %s: %w", printable(name), err)
		case gone:
			todo = todo[:len(todo)-1]
		}
		todo = append(todo, hoisted...)
	}
	return nil
}

// pendingRemoval is an entry on its way to removal.
type pendingRemoval struct {
	name    string
	emptied int // how often it was found to hold nothing more
}

// shrink takes one step: it removes the entry if it is no directory or an empty
// one, else it empties the directory's next chunk of names.
func (d *pendingRemoval) shrink(parent *os.File) (hoisted []pendingRemoval, gone bool, err error) {
	switch err := removeAt(parent, d.name); {
	case err == nil:
		return nil, true, nil
	case !isFilled(err):
		return nil, false, err
	case d.emptied > maxRefills:
		return nil, false, errRefilled
	}
	dir, err := openForRemoval(parent, d.name)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist), ignoreMissing(err)
	}
	defer closeAll(dir)
	names, err := nextNames(dir)
	if len(names) < readChunk {
		d.emptied++
	}
	if err == nil {
		hoisted, err = empty(dir, names, parent)
	}
	return hoisted, false, err
}

var (
	errMountPoint = errors.New("is a mount point")
	errRefilled   = errors.New("is filled again whenever it is emptied")
)

// empty removes names from dir and returns the new names, in parent, of the
// directories among them that are not empty.
func empty(dir *os.File, names []string, parent *os.File) (hoisted []pendingRemoval, err error) {
	for _, name := range names {
		err := removeAt(dir, name)
		if isFilled(err) {
			fresh := hoistPrefix + rand.Text()
			if err = hoist(dir, name, parent, fresh); err == nil {
				hoisted = append(hoisted, pendingRemoval{name: fresh})
			}
		}
		if err := ignoreMissing(err); err != nil {
			return hoisted, fmt.Errorf("%s: %w", printable(name), err)
		}
	}
	return hoisted, nil
}

// removeAt removes a file or an empty directory.
func removeAt(dir *os.File, name string) error {
	err := unlinkAt(dir, name)
	if !isDirectory(err) {
		return err
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.EBUSY) {
		return errMountPoint
	}
	return ignoreMissing(err)
}

// isFilled tells whether a directory was not removed because of what is in it.
func isFilled(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrExist)
}

func hoist(dir *os.File, name string, parent *os.File, fresh string) error {
	err := moveAt(dir, name, parent, fresh)
	if errors.Is(err, fs.ErrPermission) {
		// Moving a directory writes to it ("..").
		if err := unlock(dir, name); err != nil {
			return err
		}
		err = moveAt(dir, name, parent, fresh)
	}
	if errors.Is(err, unix.EBUSY) {
		return errMountPoint
	}
	return err
}

// openForRemoval opens a directory even if its owner took the owner's rights
// away, which an agent that runs as our own user can do.
func openForRemoval(parent *os.File, name string) (*os.File, error) {
	dir, err := openDirAt(parent, name)
	writable := err == nil && unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
	if writable || err != nil && !errors.Is(err, fs.ErrPermission) {
		return dir, err
	}
	closeAll(dir)
	if err := unlock(parent, name); err != nil {
		return nil, err
	}
	return openDirAt(parent, name)
}

// unlock gives us back the rights to a directory of our own.
func unlock(parent *os.File, name string) error {
	held, err := hostpath.OpenBeneath(parent, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeAll(held)
	// fchmod refuses a descriptor that was opened without rights; its link in
	// /proc leads to the same directory whatever its name is by now.
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", held.Fd()), privateDirMode)
}

// isDirectory tells whether unlinking failed because the name is a directory.
func isDirectory(err error) bool {
	return errors.Is(err, unix.EISDIR)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
