package git

import (
	"context"
	"fmt"
	"strings"
)

// Change is what happened to one path.
type Change struct {
	Path    string
	OldMode string // "000000" if it was not there
	NewMode string // "000000" if it is gone
	OldID   string
	NewID   string
}

// The modes of what a tree can hold.
const (
	ModeNone    = "000000"
	ModeFile    = "100644"
	ModeProgram = "100755"
	ModeLink    = "120000"
	ModeModule  = "160000"
)

// Added reports whether the path was not there before.
func (c *Change) Added() bool { return c.OldMode == ModeNone }

// Removed reports whether the path is gone.
func (c *Change) Removed() bool { return c.NewMode == ModeNone }

// Changes returns what differs between two trees or commits.
func (r *Repo) Changes(ctx context.Context, from, to string) ([]Change, error) {
	out, err := r.Output(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id", from, to, "--")
	if err != nil {
		return nil, err
	}
	return parseChanges(string(out))
}

// Paths returns every path of a tree or commit.
func (r *Repo) Paths(ctx context.Context, of string) ([]string, error) {
	out, err := r.Output(ctx, nil, "ls-tree", "-r", "-z", "--name-only", "--full-tree", of)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

// EmptyTree is the tree that holds nothing; git knows it everywhere.
const EmptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// parseChanges reads ":old new oldid newid status\0path\0" again and again.
func parseChanges(text string) ([]Change, error) {
	var changes []Change
	for text != "" {
		head, rest, ok := strings.Cut(text, "\x00")
		path, rest, ok2 := strings.Cut(rest, "\x00")
		fields := strings.Fields(strings.TrimPrefix(head, ":"))
		if !ok || !ok2 || len(fields) != 5 || !strings.HasPrefix(head, ":") {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", head)
		}
		changes = append(changes, Change{Path: path, OldMode: fields[0], NewMode: fields[1], OldID: fields[2], NewID: fields[3]})
		text = rest
	}
	return changes, nil
}
