package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
)

// lsEntries is how many names ls shows unless asked for fewer.
const lsEntries = 500

type lsArgs struct {
	Path  string `json:"path,omitzero" jsonschema:"Directory to list. Default: the workspace."`
	After string `json:"after,omitzero" jsonschema:"Show names that follow this one."`
	Limit int64  `json:"limit,omitzero" jsonschema:"Most names to show. Default and most: 500."`
}

func (a *lsArgs) check() (problems []error) {
	whole(&problems, "limit", a.Limit, lsEntries)
	return problems
}

func lsTool() Tool {
	return define(Tool{Name: "ls", Description: "List a directory: names, sizes, kinds."}, runLs)
}

// lsDetails are the fields of an ls result.
type lsDetails struct {
	Path    string    `json:"path"`
	Entries []lsEntry `json:"entries"`
	More    bool      `json:"more"`
}

type lsEntry struct {
	Name      string           `json:"name"`
	Kind      guestfs.FileKind `json:"kind"`
	Size      int64            `json:"size"`
	Mode      string           `json:"mode"`
	ModTimeMs int64            `json:"modTimeMs"`
}

func runLs(ctx context.Context, c *call, a *lsArgs) (*Result, error) {
	if a.Path == "" {
		a.Path = "."
	}
	p, err := c.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	limit := lsEntries
	if a.Limit > 0 {
		limit = int(a.Limit)
	}
	listing, err := c.at.Files.List(ctx, p.Container, &guestfs.ListOptions{After: a.After, Max: limit})
	if err != nil {
		return nil, fileError(p, err)
	}
	return lsResult(p, listing), nil
}

func lsResult(p policy.Path, listing *guestfs.Listing) *Result {
	details := lsDetails{Path: p.Container, Entries: []lsEntry{}, More: listing.More}
	var b strings.Builder
	for _, e := range listing.Entries {
		name := strings.ToValidUTF8(e.Path, "\uFFFD")
		details.Entries = append(details.Entries, lsEntry{name, e.Kind, e.Size, e.Mode.String(), e.ModTime.UnixMilli()})
		fmt.Fprintln(&b, lsLine(visible(name), e))
	}
	switch n := len(listing.Entries); {
	case n == 0:
		b.WriteString("[" + p.Relative + " is empty]")
	case listing.More:
		fmt.Fprintf(&b, "[there is more: go on with after %q]", details.Entries[n-1].Name)
	}
	return &Result{Text: b.String(), Details: details}
}

// lsLine is one entry. What is no plain file shows what it is.
func lsLine(name string, e guestfs.FileEntry) string {
	switch e.Kind {
	case guestfs.KindFile:
		return fmt.Sprintf("%s  %s", name, sizeText(e.Size))
	case guestfs.KindDir:
		return name + "/"
	}
	return fmt.Sprintf("%s  (%s)", name, e.Kind)
}
