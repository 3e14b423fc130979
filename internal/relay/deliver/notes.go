package deliver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Notes are files that say who works on which branch, one a run. They
// outlive the process that wrote them: what it did not get to is still known.
type Notes[T any] struct{ dir string }

func (n Notes[T]) file(run string) string { return filepath.Join(n.dir, run+".json") }

// Save writes a note so that a crash leaves the old one or the new one.
func (n Notes[T]) Save(run string, note *T) error {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return provide.ReplaceFile(n.file(run), text)
}

// load reads a note; fs.ErrNotExist if there is none.
func (n Notes[T]) load(file string) (*T, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	note := new(T)
	if err := json.Unmarshal(text, note); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return note, nil
}

// list reads all notes. Those that cannot be read are the error; they hide none
// of the others.
func (n Notes[T]) list() (notes []*T, err error) {
	files, err := filepath.Glob(filepath.Join(n.dir, "*.json"))
	problems := []error{err}
	for _, file := range files {
		note, err := n.load(file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // over meanwhile
		case err != nil:
			problems = append(problems, err)
		default:
			notes = append(notes, note)
		}
	}
	return notes, errors.Join(problems...)
}

// Remove is no error if there is none.
func (n Notes[T]) Remove(run string) error {
	if err := os.Remove(n.file(run)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// OpenWork is a branch whose commits were not taken yet.
type OpenWork struct {
	Run       string     `json:"run"`
	Branch    branch.Key `json:"branch"`
	Container string     `json:"container,omitempty"` // "" for an agent on the host
}

// OpenWork lists the branches that are worked on, or were when their process ended.
// What cannot be read is the error; it hides nothing else.
func (r *Relays) OpenWork() (list []OpenWork, err error) {
	containers, err := containerNotes(r.settings).list()
	for _, c := range containers {
		list = append(list, OpenWork{c.Run, c.Work.Key, c.Container})
	}
	agents, other := AgentNotes(r.settings).list()
	for _, w := range agents {
		list = append(list, OpenWork{Run: w.Run, Branch: w.Work.Key})
	}
	return list, errors.Join(err, other)
}
