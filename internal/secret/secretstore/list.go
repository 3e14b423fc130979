package secretstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxName is the most characters of a name.
const maxName = 64

// CheckName returns an error unless name can be the name of a secret: letters, digits,
// '_', '-' and '.', with a letter or digit first.
func CheckName(name string) error {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if name == "" || len(name) > maxName || strings.Trim(name, alphanumeric+"_-.") != "" || strings.Trim(name[:1], alphanumeric) != "" {
		return fmt.Errorf("%q is not the name of a secret: letters, digits, '_', '-' and '.', at most %d of them, the first a letter or digit", name, maxName)
	}
	return nil
}

// Entry is a secret that is kept.
type Entry struct {
	Name    string
	Changed time.Time
}

// List returns the secrets of dir, by name.
func List(dir string) ([]Entry, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []Entry
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() || CheckName(file.Name()) != nil {
			continue
		}
		entries = append(entries, Entry{file.Name(), info.ModTime()})
	}
	return entries, err
}

// All returns the secrets of dir with their values.
func All(dir string) (map[string]string, error) {
	entries, err := List(dir)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(entries))
	for _, e := range entries {
		value, ok, err := read(dir, e.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			values[e.Name] = value
		}
	}
	return values, nil
}

// Remove removes a secret. It returns fs.ErrNotExist if there is none.
func Remove(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, name))
}
