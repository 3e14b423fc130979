package provide

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file of the state directory so that a reader finds the
// old content or the new, never a part.
func ReplaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(content, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
