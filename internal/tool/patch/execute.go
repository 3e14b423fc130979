package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// undoTimeout is the time for taking back a patch that failed half way, also
// when its caller has given up.
const undoTimeout = 30 * time.Second

// Apply plans the patch and executes the plan.
func (p *Patch) Apply(ctx context.Context, files FS) (*Plan, error) {
	plan, err := p.Plan(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := plan.Execute(ctx, files); err != nil {
		return nil, err
	}
	return plan, nil
}

// Execute makes the changes of the plan, in order. A file that is not as the
// plan found it stops it with ErrChanged. If any change fails, those already
// made are undone, and the error is an *ExecuteError.
func (p *Plan) Execute(ctx context.Context, files FS) error {
	e := &execution{files: files}
	for i := range p.Operations {
		if path, err := e.operation(ctx, &p.Operations[i]); err != nil {
			return &ExecuteError{Path: path, Err: err, NotUndone: e.undo(ctx)}
		}
	}
	return nil
}

// execution remembers what was done.
type execution struct {
	files FS
	done  []step
}

// step is one call of an FS that can be taken back.
type step interface {
	path() string
	do(ctx context.Context, files FS) error
	undo(ctx context.Context, files FS) error
	// landed tells, after do failed, whether it happened all the same: a
	// connection can break after the request was carried out.
	landed(ctx context.Context, files FS) bool
}

func (e *execution) run(ctx context.Context, s step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.do(ctx, e.files)
	if err == nil {
		e.done = append(e.done, s)
		return nil
	}
	// A version that did not match is a sure sign that nothing happened.
	if !errors.Is(err, ErrChanged) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		if s.landed(ctx, e.files) {
			e.done = append(e.done, s)
		}
	}
	return err
}

// undo takes everything back, the last first, and returns what it could not.
func (e *execution) undo(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var errs []error
	for _, s := range slices.Backward(e.done) {
		if err := s.undo(ctx, e.files); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", s.path(), err))
		}
	}
	return errs
}

// operation takes the steps of one operation and returns the path at which one
// failed.
func (e *execution) operation(ctx context.Context, o *Operation) (string, error) {
	switch o.Kind {
	case Add:
		return o.Path, e.run(ctx, &write{name: o.Path, data: o.After})
	case Delete:
		return o.Path, e.run(ctx, &remove{name: o.Path, before: o.Before})
	}
	w := &write{name: o.Path, before: o.Before, data: o.After}
	if o.MoveTo != "" {
		r := &rename{from: o.Path, to: o.MoveTo, before: o.Before}
		if err := e.run(ctx, r); err != nil {
			return o.MoveTo, err
		}
		w.name, w.before.Version, w.moved = o.MoveTo, r.version, r
	}
	if bytes.Equal(w.before.Data, w.data) {
		return o.Path, nil
	}
	return w.name, e.run(ctx, w)
}

// write makes a file, or gives one new content.
type write struct {
	name    string
	before  File // Absent if there was none
	data    []byte
	version Version // after the step
	moved   *rename // how the file came here, if it did
}

func (s *write) path() string { return s.name }

func (s *write) do(ctx context.Context, files FS) (err error) {
	s.version, err = files.WriteFile(ctx, s.name, File{Data: s.data, Version: s.before.Version})
	return err
}

func (s *write) undo(ctx context.Context, files FS) error {
	if s.before.Version == Absent {
		return files.Remove(ctx, s.name, s.version)
	}
	version, err := files.WriteFile(ctx, s.name, File{Data: s.before.Data, Mode: s.before.Mode, Version: s.version})
	if s.moved != nil {
		s.moved.version = version // the one to be moved back
	}
	return err
}

func (s *write) landed(ctx context.Context, files FS) bool {
	now, err := files.ReadFile(ctx, s.name)
	s.version = now.Version
	return err == nil && now.Version != s.before.Version && bytes.Equal(now.Data, s.data)
}

// rename moves a file.
type rename struct {
	from, to string
	before   File
	version  Version
}

func (s *rename) path() string { return s.from }

func (s *rename) do(ctx context.Context, files FS) (err error) {
	s.version, err = files.Rename(ctx, s.from, s.to, s.before.Version)
	return err
}

func (s *rename) undo(ctx context.Context, files FS) error {
	_, err := files.Rename(ctx, s.to, s.from, s.version)
	return err
}

func (s *rename) landed(ctx context.Context, files FS) bool {
	_, gone := files.ReadFile(ctx, s.from)
	now, err := files.ReadFile(ctx, s.to)
	s.version = now.Version
	return err == nil && errors.Is(gone, fs.ErrNotExist) && bytes.Equal(now.Data, s.before.Data)
}

// remove takes a file away. Its content and mode are enough to bring it back.
type remove struct {
	name   string
	before File
}

func (s *remove) path() string { return s.name }

func (s *remove) do(ctx context.Context, files FS) error {
	return files.Remove(ctx, s.name, s.before.Version)
}

func (s *remove) undo(ctx context.Context, files FS) error {
	_, err := files.WriteFile(ctx, s.name, File{Data: s.before.Data, Mode: s.before.Mode, Version: Absent})
	return err
}

func (s *remove) landed(ctx context.Context, files FS) bool {
	_, err := files.ReadFile(ctx, s.name)
	return errors.Is(err, fs.ErrNotExist)
}
