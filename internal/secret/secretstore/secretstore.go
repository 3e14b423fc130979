// Package secretstore keeps secrets that a person typed in, each a file for its owner
// alone. It works on every system.
package secretstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	made, err := write(dir, value)
	if err != nil {
		return err
	}
	if err := os.Rename(made, filepath.Join(dir, name)); err != nil {
		return errors.Join(err, os.Remove(made))
	}
	return nil
}

// KeepFirst keeps a secret unless dir has one of that name, and returns the one that is
// kept. Of two processes at the same time, both return the same.
func KeepFirst(dir, name, value string) (kept string, err error) {
	if kept, ok, err := read(dir, name); ok || err != nil {
		return kept, err
	}
	made, err := write(dir, value)
	if err != nil {
		return "", err
	}
	err = os.Link(made, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, os.Remove(made)); err != nil {
		return "", err
	}
	kept, _, err = read(dir, name)
	return kept, err
}

// write writes a new file for its owner alone, and returns its path.
func write(dir, value string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, temporary+"*") // its mode is 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(value + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// temporary begins the names of files that are being written.
const temporary = ".new-"

// read returns a secret of dir; false if there is none.
func read(dir, name string) (value string, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return strings.TrimSuffix(string(text), "\n"), err == nil, err
}
