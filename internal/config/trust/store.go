package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Record is a file that a person trusted.
type Record struct {
	Path    string    `json:"path"`
	Hash    string    `json:"sha256"`
	Trusted time.Time `json:"trusted"`
	// Content is what was shown to the person.
	Content string `json:"content"`
	// Repository is what worktrees have in common, "" without one, and Relative
	// the file's place in each.
	Repository string  `json:"repository,omitempty"`
	Relative   string  `json:"relative,omitempty"`
	Named      []named `json:"named,omitempty"`
}

// store keeps a file for each record, in a directory of the state directory.
type store struct{ dir string }

const (
	storeDir  = "trust"
	maxRecord = 8 * MaxSize
)

func storeIn(state string) store { return store{filepath.Join(state, storeDir)} }

func (s store) file(path string) string {
	return filepath.Join(s.dir, hashOf([]byte(path))[:32]+".json")
}

// all returns the records by path. One that cannot be read is left out: what it
// said is then not trusted.
func (s store) all() ([]Record, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("trusted files: %w", err)
	}
	var records []Record
	for _, entry := range entries {
		if r, ok := readRecord(filepath.Join(s.dir, entry.Name())); ok {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Path, b.Path) })
	return records, nil
}

func readRecord(path string) (r Record, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord || filepath.Ext(path) != ".json" {
		return r, false
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &r) != nil {
		return r, false
	}
	return r, r.Hash == hashOf([]byte(r.Content))
}

// put writes a record, in place of an older one of the same path.
func (s store) put(r *Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(s.dir, "new-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it has its name, or is of no use
	_, err = temporary.Write(text)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), s.file(r.Path))
}

// remove forgets a path and reports whether it was known.
func (s store) remove(path string) (bool, error) {
	err := os.Remove(s.file(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
