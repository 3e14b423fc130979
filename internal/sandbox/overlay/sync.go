package overlay

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxSynced is how many files and directories are synced one by one. With more
// of them the whole file system is.
const maxSynced = 200

// syncTree brings a directory and all that is in it to disk.
func syncTree(root *os.File) error {
	left := maxSynced
	err := syncDir(root, &left)
	if errors.Is(err, errTooMany) {
		return unix.Syncfs(int(root.Fd()))
	}
	return err
}

// syncDir syncs what is in a directory, and then the directory. errTooMany if
// that is more than left, or something cannot be opened.
func syncDir(dir *os.File, left *int) error {
	names, err := sortedNames(dir, *left)
	if err != nil {
		return err
	}
	*left -= len(names)
	for _, name := range names {
		st, err := statAt(dir, name)
		if err != nil {
			return errors.Join(err, errTooMany)
		}
		if err := syncEntry(dir, name, &st, left); err != nil {
			return err
		}
	}
	return dir.Sync()
}

func syncEntry(dir *os.File, name string, st *unix.Stat_t, left *int) error {
	open := openFileAt
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		open = openDirAt
	case unix.S_IFREG:
	default:
		return nil // its directory has all of it
	}
	f, err := open(dir, name)
	if err != nil {
		return errors.Join(err, errTooMany)
	}
	defer f.Close()
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return syncDir(f, left)
	}
	return f.Sync()
}
