package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/tool/edit"
)

// maxFile bounds a file that write makes or edit changes.
const maxFile = edit.MaxContent

type writeArgs struct {
	Path    string `json:"path" jsonschema:"File to write, relative to the workspace or absolute. Directories above it are made."`
	Content string `json:"content" jsonschema:"The whole new content."`
}

func (a *writeArgs) check() []error {
	if len(a.Content) > maxFile {
		return []error{fmt.Errorf(`"/content" has %d bytes, over the limit of %d`, len(a.Content), maxFile)}
	}
	return nil
}

func writeTool() Tool {
	return define(Tool{
		Name:        "write",
		Description: "Write a whole text file, new or in place of the old one; to change parts of a file use edit.",
	}, runWrite)
}

// writeDetails are the fields of a write result.
type writeDetails struct {
	fileDetails
	Created bool `json:"created"`
}

func runWrite(ctx context.Context, c *call, a *writeArgs) (*Result, error) {
	p, err := c.resolveToChange(a.Path)
	if err != nil {
		return nil, err
	}
	known, err := c.recall(ctx, p.Container)
	if err != nil {
		return nil, err
	}
	written, err := c.at.Files.Write(ctx, p.Container, []byte(a.Content), &guestfs.WriteOptions{IfVersion: known, MkdirAll: true})
	if err != nil {
		return nil, fileError(p, err)
	}
	verb := "replaced"
	if written.Created {
		verb = "created"
	}
	return &Result{
		Text:    fmt.Sprintf("%s %s (%s, %d lines)", verb, p.Relative, sizeText(int64(len(a.Content))), countLines(a.Content)),
		Details: writeDetails{detailsOfFile(p, written.Info), written.Created},
	}, c.remember(ctx, p.Container, written.Info.Version)
}

// countLines counts a last line without an end too.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// readWhole reads a file that is to be changed.
func (c *call) readWhole(ctx context.Context, path string) (*guestfs.Content, error) {
	content, err := c.at.Files.Read(ctx, path, &guestfs.ReadOptions{Limit: maxFile})
	if err == nil && content.More {
		err = machine.ErrTooLarge
	}
	return content, err
}
