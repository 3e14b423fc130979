package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
)

// The refusals of an undo.
var (
	ErrNoBatch = errors.New("no such sync")
	ErrUndone  = errors.New("it was undone already, or never applied")
	ErrGone    = errors.New("what it replaced is not kept any more")
)

// Undo puts back exactly what a batch replaced. If a file is not what the batch left
// there, nothing is put back.
func (g *Gate) Undo(ctx context.Context, id, by string) (*Applied, error) {
	b, err := g.undoable(id)
	if err != nil {
		return nil, err
	}
	base, err := g.openBase()
	if err != nil {
		return nil, err
	}
	defer base.close()
	steps, err := g.reverse(base, b)
	if err != nil {
		return nil, err
	}
	undo := &batch{id: newID(), by: by, undoes: id, steps: order(steps)}
	if err := g.apply(ctx, undo); err != nil {
		return nil, err
	}
	result := &Applied{ID: undo.id, Files: []string{}}
	for i := range b.steps {
		if !b.steps[i].Implied {
			result.Files = append(result.Files, b.steps[i].Path)
		}
	}
	g.record(audit.FileEvent{Event: "undone", Batch: id, Files: len(result.Files), By: by})
	return result, nil
}

// undoable returns a batch that was applied and not undone since.
func (g *Gate) undoable(id string) (found *batch, err error) {
	for _, b := range g.journal.batches() {
		switch {
		case b.id == id:
			found = b
		case found != nil && b.undoes == id && b.result == ResultApplied:
			return nil, fmt.Errorf("%q: %w", id, ErrUndone)
		}
	}
	switch {
	case found == nil:
		return nil, fmt.Errorf("%q: %w", id, ErrNoBatch)
	case found.result != ResultApplied:
		return nil, fmt.Errorf("%q: %w", id, ErrUndone)
	case !g.isKept(found):
		return nil, fmt.Errorf("%q: %w", id, ErrGone)
	}
	return found, nil
}

// reverse makes the steps that put back what a batch replaced.
func (g *Gate) reverse(base *baseDir, b *batch) (steps []step, err error) {
	var changed []string
	for n := range b.steps {
		s := &b.steps[n]
		if s.isDir() {
			steps = append(steps, step{Path: s.Path, Before: s.After, After: s.Before, Implied: s.Implied})
			continue
		}
		now, err := base.lookAt(s.Path)
		if err != nil || !now.leftBy(s.After, b.replaced(n)) {
			changed = append(changed, s.Path)
			continue
		}
		back := step{Path: s.Path, Before: now, After: s.Before}
		if s.After == nil {
			back.Before = nil // a directory is removed by a step of its own
		}
		if s.Before != nil {
			back.From = b.id + "/" + strconv.Itoa(n)
			if _, err := os.Lstat(filepath.Join(g.undoDir(b.id), strconv.Itoa(n))); err != nil {
				return nil, fmt.Errorf("%q: %w", s.Path, ErrGone)
			}
		}
		steps = append(steps, back)
	}
	if len(changed) > 0 {
		return nil, &ConflictError{changed}
	}
	return steps, nil
}

// replaced reports whether another step of the batch puts a directory where this one
// removed a file.
func (b *batch) replaced(n int) bool {
	for i := range b.steps {
		if i != n && b.steps[i].Path == b.steps[n].Path {
			return true
		}
	}
	return false
}

// leftBy reports whether a path has what a step left there.
func (c *content) leftBy(after *content, replaced bool) bool {
	if after == nil {
		return c == nil || replaced && c.Type == typeDir
	}
	return c != nil && c.Type == after.Type && c.SHA256 == after.SHA256 && c.Link == after.Link && (c.Type == typeLink || c.Mode == after.Mode)
}

// isKept reports whether what a batch replaced is still kept.
func (g *Gate) isKept(b *batch) bool {
	_, err := os.Stat(g.undoDir(b.id))
	return err == nil
}

// Past is a batch of the history.
type Past struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	By       string    `json:"by,omitempty"`
	Files    []string  `json:"files"`
	Result   Result    `json:"result"`
	Undoes   string    `json:"undoes,omitempty"`
	Undoable bool      `json:"undoable"`
	Left     []string  `json:"left,omitempty"`
}

// History returns the batches, the newest first.
func (g *Gate) History() []Past {
	batches := g.journal.batches()
	undone := map[string]bool{}
	for _, b := range batches {
		if b.result == ResultApplied {
			undone[b.undoes] = true
		}
	}
	past := []Past{}
	for _, b := range slices.Backward(batches) {
		p := Past{ID: b.id, Time: b.time, By: b.by, Files: []string{}, Result: b.result, Undoes: b.undoes, Left: b.left, Undoable: b.result == ResultApplied && !undone[b.id] && g.isKept(b)}
		for n := range b.steps {
			if !b.steps[n].Implied {
				p.Files = append(p.Files, b.steps[n].Path)
			}
		}
		past = append(past, p)
	}
	return past
}
