package store

import (
	"errors"
	"io/fs"
	"os"
)

// makePrivate makes the file with mode 0600, which SQLite gives to the files
// beside it too, and takes it from what an earlier version left to others.
func makePrivate(path string) error {
	if err := makeFile(path); err != nil {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeFile makes an empty file where there is none. It never opens one that is
// there: closing it again would drop the locks that this process has on it.
func makeFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission):
		return nil // another process was faster, or SQLite reports what is in the way
	case err != nil:
		return err
	}
	return f.Close()
}
