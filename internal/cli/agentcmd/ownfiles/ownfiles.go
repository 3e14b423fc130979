// Package ownfiles collects files of a person's own settings, within limits.
package ownfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What of a person's own settings enters: instructions, skills and commands. Larger
// files, and what is beyond these numbers, stay out, and are counted.
const (
	maxFile  = 1 << 20
	maxBytes = 16 << 20
	maxFiles = 2_000
)

// Files are files of the person's home. The zero value has none.
type Files struct {
	Found map[string][]byte // by the path below the home inside
	Left  int               // how many stay out
	bytes int64
}

// Add collects a file or a directory, which may be a link itself.
func (o *Files) Add(from, to string) error {
	file, err := filepath.EvalSymlinks(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return filepath.WalkDir(file, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(file, at)
		if err != nil {
			return err
		}
		return o.visit(at, path.Join(to, filepath.ToSlash(rel)), rel != "." && strings.HasPrefix(entry.Name(), "."), entry)
	})
}

// visit takes a file, unless it is hidden, such as .env and .git, or beyond the limits.
func (o *Files) visit(at, to string, hidden bool, entry fs.DirEntry) error {
	switch {
	case entry.IsDir() && (hidden || entry.Name() == "node_modules"):
		o.Left++
		return fs.SkipDir
	case entry.IsDir():
		return nil
	case hidden || !entry.Type().IsRegular() || len(o.Found) == maxFiles:
		o.Left++
		return nil
	}
	content, err := ReadAtMost(at, maxFile)
	if err != nil || o.bytes+int64(len(content)) > maxBytes {
		o.Left++
		return nil //nolint:nilerr // it is counted
	}
	if o.Found == nil {
		o.Found = map[string][]byte{}
	}
	o.Found[to], o.bytes = content, o.bytes+int64(len(content))
	return nil
}

// ReadAtMost reads a file that has no more than most bytes.
func ReadAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", file, most)
	}
	return content, err
}
