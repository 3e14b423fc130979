package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/tool/patch"
)

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"The patch, from *** Begin Patch to *** End Patch. File sections: *** Add File: PATH, *** Delete File: PATH, *** Update File: PATH with an optional *** Move to: PATH and hunks that begin with @@ and have lines starting with a space, - or +."`
}

func patchTool() Tool {
	return define(Tool{
		Name:        "apply_patch",
		Description: "Add, change, move and delete several files with one patch: all of it or nothing.",
	}, runPatch)
}

// patchDetails are the fields of an apply_patch result.
type patchDetails struct {
	Files []patchedFile `json:"files"`
}

type patchedFile struct {
	Kind   patch.Kind `json:"kind"`
	Path   string     `json:"path"`
	MoveTo string     `json:"moveTo,omitempty"`
	Diff   string     `json:"diff"`
}

func runPatch(ctx context.Context, c *call, a *patchArgs) (*Result, error) {
	parsed, err := patch.Parse(a.Patch)
	if err != nil {
		return nil, err
	}
	plan, err := parsed.Apply(ctx, &patchFiles{call: c, checked: map[string]bool{}})
	if err != nil {
		return nil, patchError(err)
	}
	return patchResult(plan), nil
}

// patchError shows the places that a conflict is about.
func patchError(err error) error {
	if isBeyondModel(err) {
		return err
	}
	return &patchFailure{err}
}

type patchFailure struct{ error }

func (e *patchFailure) Unwrap() error { return e.error }

// Explain lists every conflict with its candidates.
func (e *patchFailure) Explain() string {
	joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](e.error)
	if !ok {
		return e.Error()
	}
	var b strings.Builder
	for _, err := range joined.Unwrap() {
		if c, ok := errors.AsType[*patch.ConflictError](err); ok {
			b.WriteString(c.Explain())
		} else {
			b.WriteString(err.Error() + "\n")
		}
	}
	return b.String()
}

func patchResult(plan *patch.Plan) *Result {
	var b strings.Builder
	details := patchDetails{Files: []patchedFile{}}
	for i := range plan.Operations {
		o := &plan.Operations[i]
		f := patchedFile{Kind: o.Kind, Path: o.Path, MoveTo: o.MoveTo, Diff: o.Diff(maxDiff)}
		details.Files = append(details.Files, f)
		fmt.Fprintln(&b, patchLine(o))
	}
	return &Result{Text: b.String(), Details: details}
}

// patchLine says what was done to one file, and how exactly its place was found.
func patchLine(o *patch.Operation) string {
	var b strings.Builder
	b.WriteString(map[patch.Kind]string{patch.Add: "added ", patch.Delete: "deleted ", patch.Update: "updated "}[o.Kind] + o.Path)
	if o.MoveTo != "" {
		b.WriteString(", now " + o.MoveTo)
	}
	for _, p := range o.Placements {
		if p.Level != patch.Exact {
			fmt.Fprintf(&b, " (at line %d: %s)", p.FileLine, p.Level)
		}
	}
	return b.String()
}

// patchFiles are the session's files for a patch. A file that changed after the
// session read it is refused when the patch first reads it.
type patchFiles struct {
	*call
	checked map[string]bool
}

// ReadFile implements patch.FS.
func (f *patchFiles) ReadFile(ctx context.Context, name string) (patch.File, error) {
	p, err := f.resolve(name)
	if err != nil {
		return patch.File{}, err
	}
	content, err := f.readWhole(ctx, p.Container)
	if err == nil && !f.checked[p.Container] {
		content.Info.Version, err = f.expected(ctx, p.Container, content.Info.Version)
	}
	f.checked[p.Container] = true
	if err != nil {
		return patch.File{}, translate(fileError(p, err))
	}
	return patch.File{Data: content.Data, Mode: content.Info.Mode, Version: patch.Version(content.Info.Version)}, nil
}

// WriteFile implements patch.FS.
func (f *patchFiles) WriteFile(ctx context.Context, name string, file patch.File) (patch.Version, error) {
	p, err := f.resolveToChange(name)
	if err != nil {
		return "", err
	}
	written, err := f.at.Files.Write(ctx, p.Container, file.Data, &guestfs.WriteOptions{
		Mode: file.Mode, Exclusive: file.Version == patch.Absent, IfVersion: guestfs.Version(file.Version), MkdirAll: true,
	})
	if err != nil {
		return "", translate(fileError(p, err))
	}
	return patch.Version(written.Info.Version), f.remember(ctx, p.Container, written.Info.Version)
}

// Rename implements patch.FS.
func (f *patchFiles) Rename(ctx context.Context, from, to string, version patch.Version) (patch.Version, error) {
	source, err := f.resolveToChange(from)
	if err != nil {
		return "", err
	}
	target, err := f.resolveToChange(to)
	if err != nil {
		return "", err
	}
	options := &guestfs.RenameOptions{NoReplace: true, MkdirAll: true, IfVersion: guestfs.Version(version)}
	if err := f.at.Files.Rename(ctx, source.Container, target.Container, options); err != nil {
		return "", translate(fileError(target, err))
	}
	info, err := f.at.Files.Stat(ctx, target.Container)
	if err != nil {
		return "", fileError(target, err)
	}
	return patch.Version(info.Version), errors.Join(f.remember(ctx, source.Container, ""), f.remember(ctx, target.Container, info.Version))
}

// Remove implements patch.FS.
func (f *patchFiles) Remove(ctx context.Context, name string, version patch.Version) error {
	p, err := f.resolveToChange(name)
	if err != nil {
		return err
	}
	if _, err := f.at.Files.Remove(ctx, p.Container, &guestfs.RemoveOptions{IfVersion: guestfs.Version(version)}); err != nil {
		return translate(fileError(p, err))
	}
	return f.remember(ctx, p.Container, "")
}

// translate makes a changed file one that package patch recognises.
func translate(err error) error {
	if errors.Is(err, machine.ErrChanged) {
		return changedFile{err}
	}
	return err
}

type changedFile struct{ error }

// Unwrap makes it a patch.ErrChanged beside what it is.
func (e changedFile) Unwrap() []error { return []error{patch.ErrChanged, e.error} }
