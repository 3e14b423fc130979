package clientconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Include is the change to the person's own configuration that makes the client read
// ours.
type Include struct {
	Path string // of the person's file, with links followed
	Line string
	Has  bool // the file has the line already
	old  string
	mode fs.FileMode
}

// FindInclude looks at the person's file at path, which need not exist.
func (f *Files) FindInclude(path string) (*Include, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a file that is kept elsewhere stays there
	}
	i := &Include{Path: path, Line: `Include "` + f.ConfigPath() + `"`, mode: 0o600}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	} else if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil {
		i.mode = info.Mode().Perm()
	}
	i.old = string(text)
	for line := range strings.Lines(i.old) {
		i.Has = i.Has || strings.TrimSpace(line) == i.Line
	}
	return i, nil
}

// Add writes the line at the beginning of the file: further down it would belong to a
// Host above it.
func (i *Include) Add() error {
	if i.Has {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(i.Path), 0o700); err != nil {
		return err
	}
	return replace(i.Path, []byte(i.Line+"\n\n"+i.old), i.mode)
}

// Remove takes the line out, with an empty one after it.
func (i *Include) Remove() error {
	if !i.Has {
		return nil
	}
	text := strings.Replace(i.old, i.Line+"\n\n", "", 1)
	if len(text) == len(i.old) {
		text = strings.Replace(i.old, i.Line+"\n", "", 1)
	}
	return replace(i.Path, []byte(text), i.mode)
}
