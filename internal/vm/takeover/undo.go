package takeover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/atoll-run/atoll/internal/errhint"
)

// takeBack puts back what was changed, the last first.
func (b *batch) takeBack() error {
	var wrong []error
	for _, s := range slices.Backward(b.done) {
		wrong = append(wrong, b.restore(&s))
	}
	return errors.Join(wrong...)
}

// restore makes a path what it was.
func (b *batch) restore(s *saved) error {
	if now, err := State(b.root, s.Path); err != nil || now == s.Before {
		return err
	}
	c := Change{Path: s.Path, Mode: s.Mode, Link: s.Link, Delete: s.Before == "nothing", Dir: s.Before == "directory"}
	if s.Backup != "" {
		content, err := os.ReadFile(filepath.Join(b.keep, s.Backup))
		if err != nil {
			return err
		}
		c.Content = content
	}
	return place(b.root, &c)
}

var idForm = regexp.MustCompile(`^[A-Z0-9]{12}$`)

// Undo puts back what a batch changed, unless a path was changed since.
func Undo(dir, keep, id string) (*Batch, error) {
	if !idForm.MatchString(id) {
		return nil, fmt.Errorf("%q is no id of a batch", id)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	b := &batch{root: root, keep: filepath.Join(keep, id)}
	text, err := os.ReadFile(filepath.Join(b.keep, journalName))
	if err != nil {
		return nil, errhint.With(fmt.Errorf("there is no batch %s", id), "`atoll vm apply` printed its id")
	}
	if err := json.Unmarshal(text, &b.done); err != nil {
		return nil, err
	}
	done := &Batch{ID: id}
	for _, s := range b.done {
		now, err := State(root, s.Path)
		if err != nil {
			return nil, err
		}
		if now != s.After {
			return nil, errhint.With(fmt.Errorf("%s was changed since", s.Path), "put it back by hand: what it was is in "+b.keep)
		}
		done.Paths = append(done.Paths, Path{s.Path, s.Before, s.Overlay})
	}
	return done, errors.Join(b.takeBack(), os.RemoveAll(b.keep))
}
