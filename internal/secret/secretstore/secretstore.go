// Package secretstore keeps secrets that a person typed in, each a file for its owner
// alone. It works on every system.
package secretstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir holds the secrets, below the state directory.
const Dir = "secrets"

// Find returns the file of a secret that Keep keeps in dir; false if there is none.
func Find(dir, name string) (file string, ok bool) {
	file = filepath.Join(dir, name)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	return file, true
}

// Keep keeps a secret as a file of dir for its owner alone, and replaces an older one.
func Keep(dir, name, value string) error {
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
