package tool

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/tool/edit"
)

// maxDiff bounds the diff in a result.
const maxDiff = 8 << 10

type editArgs struct {
	Path       string      `json:"path" jsonschema:"File to change, relative to the workspace or absolute."`
	OldText    string      `json:"oldText,omitzero" jsonschema:"Text to replace, exactly as it is in the file, in one place only."`
	NewText    string      `json:"newText,omitzero" jsonschema:"Text to put there."`
	ReplaceAll bool        `json:"replaceAll,omitzero" jsonschema:"Replace oldText wherever it is."`
	Edits      []editPiece `json:"edits,omitzero" jsonschema:"Several replacements in place of oldText and newText, made one after the other: all or none."`
}

type editPiece struct {
	OldText    string `json:"oldText" jsonschema:"Text to replace, exactly as it is in the file."`
	NewText    string `json:"newText" jsonschema:"Text to put there."`
	ReplaceAll bool   `json:"replaceAll,omitzero" jsonschema:"Replace it wherever it is."`
}

func (a *editArgs) check() []error {
	single := a.OldText != "" || a.NewText != "" || a.ReplaceAll
	if single == (len(a.Edits) > 0) {
		return []error{errors.New(`either "/oldText" and "/newText" or "/edits" must be given`)}
	}
	return nil
}

// list is the edits in either form.
func (a *editArgs) list() (edits []edit.Edit) {
	if len(a.Edits) == 0 {
		return []edit.Edit{{Old: a.OldText, New: a.NewText, All: a.ReplaceAll}}
	}
	for _, e := range a.Edits {
		edits = append(edits, edit.Edit{Old: e.OldText, New: e.NewText, All: e.ReplaceAll})
	}
	return edits
}

func editTool() Tool {
	return define(Tool{
		Name:        "edit",
		Description: "Replace text in a file; the old text must match exactly and be there only once.",
	}, runEdit)
}

// editDetails are the fields of an edit result.
type editDetails struct {
	fileDetails
	Replaced  int    `json:"replaced"`
	FirstLine int    `json:"firstLine"`
	Diff      string `json:"diff"`
}

func runEdit(ctx context.Context, c *call, a *editArgs) (*Result, error) {
	p, err := c.resolveToChange(a.Path)
	if err != nil {
		return nil, err
	}
	before, err := c.readToEdit(ctx, p.Container)
	if err != nil {
		return nil, fileError(p, err)
	}
	after, err := edit.ReplaceAll(string(before.Data), a.list())
	if err != nil {
		return nil, err
	}
	written, err := c.at.Files.Write(ctx, p.Container, []byte(after.Content), &guestfs.WriteOptions{IfVersion: before.Info.Version})
	if err != nil {
		return nil, fileError(p, err)
	}
	diff := after.Diff(p.Relative, maxDiff)
	return &Result{
		Text:    fmt.Sprintf("edited %s: %d replaced, first at line %d\n%s", p.Relative, after.Count, after.FirstLine, diff),
		Details: editDetails{detailsOfFile(p, written.Info), after.Count, after.FirstLine, diff},
	}, c.remember(ctx, p.Container, written.Info.Version)
}

var errNotText = errors.New("is not a text file")

// readToEdit reads a text file, and refuses one that is not as this session
// knows it.
func (c *call) readToEdit(ctx context.Context, path string) (*guestfs.Content, error) {
	content, err := c.readWhole(ctx, path)
	if err != nil {
		return nil, err
	}
	if isBinary(content.Data) {
		return nil, errNotText
	}
	content.Info.Version, err = c.expected(ctx, path, content.Info.Version)
	return content, err
}
