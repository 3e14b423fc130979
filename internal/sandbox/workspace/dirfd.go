package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// The operations on one name in a directory that is held open. A name here is a
// single component, so there is nothing on the way that could be exchanged; the
// last component is never followed.

// readChunk is how many names are read from a directory at once, so that a
// directory with millions of them costs time but no memory.
const readChunk = 1024

// The bits of directories and files that a sandbox may see.
const (
	sharedDirMode  = 0o755
	privateDirMode = 0o700
	sharedFileMode = 0o644
)

func lstatAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// existsAt tells whether a name is taken, by whatever.
func existsAt(dir *os.File, name string) (bool, error) {
	_, err := lstatAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// moveAt gives an entry another place and name, which must be free.
func moveAt(from *os.File, name string, to *os.File, newName string) error {
	err := unix.Renameat2(int(from.Fd()), name, int(to.Fd()), newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// A file system that cannot rename exclusively. Our new names are random.
		err = unix.Renameat(int(from.Fd()), name, int(to.Fd()), newName)
	}
	return err
}

// unlinkAt removes a name that is no directory. Absence is no error.
func unlinkAt(dir *os.File, name string) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeDir opens the directory called name, making it if needed. A new one gets
// the owner and exactly the mode. It tells whether it is new.
func makeDir(parent *os.File, name string, as newDir) (*os.File, bool, error) {
	err := unix.Mkdirat(int(parent.Fd()), name, privateDirMode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, false, fmt.Errorf("%q: %w", name, err)
	}
	made := err == nil
	dir, err := openDirAt(parent, name)
	if err != nil || !made {
		return dir, false, err
	}
	if err := as.apply(dir); err != nil {
		return nil, false, errors.Join(fmt.Errorf("%q: %w", name, err), dir.Close())
	}
	return dir, true, nil
}

// newDir is how a directory is to be made.
type newDir struct {
	owner *hostpath.Owner // nil: the process
	mode  fs.FileMode
}

func (n newDir) apply(dir *os.File) error {
	if n.owner != nil {
		if err := dir.Chown(n.owner.UID, n.owner.GID); err != nil {
			return err
		}
	}
	return dir.Chmod(n.mode)
}

func openDirAt(parent *os.File, name string) (*os.File, error) {
	return hostpath.OpenBeneath(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// ownerOf returns the owner that new entries of a workspace must get: that of
// the workspace itself. Only root can and need give files away.
func ownerOf(dir *os.File) (*hostpath.Owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, err
	}
	return &hostpath.Owner{UID: int(st.Uid), GID: int(st.Gid)}, nil
}

// nextNames reads the next names of a directory, none at its end. Types are not
// asked for here: package os would look them up by path.
func nextNames(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(readChunk)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return names, err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
