package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir holds secrets that a person typed in, below the state directory.
const Dir = "secrets"

// Stored returns the file of a secret that Store keeps in dir; false if there is none.
func Stored(dir, name string) (file string, ok bool) {
	file = filepath.Join(dir, name)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	return file, true
}

// Store keeps a secret as a file of dir for its owner alone, and replaces an older one.
func Store(dir, name, value string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
