package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

// A Plan is a patch worked out against the files as they are.
type Plan struct {
	Operations []Operation
}

// An Operation is what will be done, or was done, to one file.
type Operation struct {
	Kind       Kind
	Path       string
	MoveTo     string // new path of an updated file, or ""
	Before     File   // as it was read; no data and Absent for an added one
	After      []byte // new content; nil for a deleted one
	Placements []Placement
}

// A Placement says where a hunk was found.
type Placement struct {
	PatchLine int // of the hunk
	FileLine  int // of its first line, in the file before the patch
	Level     Level
}

// Diff returns what changes as a unified diff, cut to limit bytes (0: whole).
func (o *Operation) Diff(limit int) string {
	oldName, newName := o.Path, o.Path
	switch {
	case o.Kind == Add:
		oldName = diff.DevNull
	case o.Kind == Delete:
		newName = diff.DevNull
	case o.MoveTo != "":
		newName = o.MoveTo
	}
	return diff.Unified(oldName, newName, o.Before.Data, o.After, limit)
}

// Plan computes every new content and finds every conflict, without writing. If
// there are conflicts it returns all of them; each is a *ConflictError.
func (p *Patch) Plan(ctx context.Context, files FS) (*Plan, error) {
	w := &planner{files, &budget{comparisons: maxComparisons, searched: maxSearched}}
	plan := &Plan{}
	var errs []error
	size := 0
	for i := range p.Changes {
		op, err := w.operation(ctx, &p.Changes[i])
		if err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if size += len(op.Before.Data) + len(op.After); size > MaxPlanBytes {
			return nil, ErrPlanTooLarge
		}
		plan.Operations = append(plan.Operations, op)
	}
	if len(errs) > 0 {
		return nil, errhint.With(errors.Join(errs...), "nothing was changed: read the files again and correct the patch")
	}
	return plan, nil
}

// planner works out one change after the other.
type planner struct {
	files  FS
	budget *budget
}

func (w *planner) operation(ctx context.Context, c *Change) (op Operation, err error) {
	op = Operation{Kind: c.Kind, Path: c.Path, MoveTo: c.MoveTo}
	switch c.Kind {
	case Add:
		op.After = []byte(joinLines(c.Content))
		err = w.mustNotExist(ctx, c.Path)
	case Delete:
		op.Before, err = w.files.ReadFile(ctx, c.Path)
	case Update:
		err = w.update(ctx, c, &op)
	}
	return op, conflict(err, c)
}

// conflict names the change in an error that does not yet name one.
func conflict(err error, c *Change) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*ConflictError](err)
	if !ok {
		e = &ConflictError{Err: err}
	}
	e.Path = c.Path
	if e.Line == 0 {
		e.Line = c.Line
	}
	return e
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func (w *planner) mustNotExist(ctx context.Context, path string) error {
	_, err := w.files.ReadFile(ctx, path)
	switch {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

func (w *planner) update(ctx context.Context, c *Change, op *Operation) (err error) {
	if op.Before, err = w.files.ReadFile(ctx, c.Path); err != nil {
		return err
	}
	if c.MoveTo != "" {
		if err := w.mustNotExist(ctx, c.MoveTo); err != nil {
			return fmt.Errorf("move to %q: %w", c.MoveTo, err)
		}
	}
	d, err := newDocument(op.Before.Data, w.budget)
	if err != nil {
		return err
	}
	splices, err := d.place(c.Hunks, op)
	if err != nil {
		return err
	}
	op.After = d.with(splices)
	if c.MoveTo == "" && bytes.Equal(op.Before.Data, op.After) {
		return ErrNoChange
	}
	return nil
}

// place finds all hunks of a file, one after the other.
func (d *document) place(hunks []Hunk, op *Operation) ([]splice, error) {
	var splices, appended []splice
	changed, end := 0, 0 // after the last line changed, and after the last hunk
	for i := range hunks {
		h := &hunks[i]
		s, err := d.locate(h, end)
		if err != nil && changed < end {
			// The lines that hunks keep may be shared by neighbours.
			if again, failed := d.locate(h, changed); failed == nil {
				s, err = again, nil
			}
		}
		if err != nil {
			return nil, inHunk(err, h)
		}
		op.Placements = append(op.Placements, Placement{PatchLine: h.Line, FileLine: s.at + 1, Level: s.level})
		if h.appends() {
			appended = append(appended, s.splices()...)
			continue
		}
		splices = append(splices, s.splices()...)
		last := splices[len(splices)-1]
		changed, end = last.at+last.remove, s.at+len(oldLines(s.lines))
	}
	return append(splices, appended...), nil
}

func inHunk(err error, h *Hunk) error {
	e, ok := errors.AsType[*ConflictError](err)
	if !ok {
		e = &ConflictError{Err: err}
	}
	e.Line = h.Line
	return e
}

// splices turns the lines of a hunk, at its place, into what is to be done.
func (s spot) splices() []splice {
	var all []splice
	at, open := s.at, false
	for _, line := range s.lines {
		if line.Op == Keep {
			at, open = at+1, false
			continue
		}
		if !open {
			all, open = append(all, splice{at: at}), true
		}
		last := &all[len(all)-1]
		if line.Op == Insert {
			last.insert = append(last.insert, line.Text)
		} else {
			last.remove++
			at++
		}
	}
	return all
}
