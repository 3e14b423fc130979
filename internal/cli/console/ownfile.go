package console

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// ReplaceOwn writes a file of the person anew, as a whole. It keeps the mode that the file
// has, and a link to it; a file that is not there gets mode.
func ReplaceOwn(path string, text []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return hostpath.Replace(path, text, mode)
}
