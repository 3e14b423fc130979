package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
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
	out, err := r.Output(ctx, nil, append(append([]string{"diff-tree"}, rawChanges()...), "--no-commit-id", from, to, "--")...)
	if err != nil {
		return nil, err
	}
	var changes []Change
	rest := bufio.NewReaderSize(bytes.NewReader(out), maxField)
	for {
		head, err := field(rest)
		if errors.Is(err, io.EOF) && head == "" {
			return changes, nil
		}
		if err == nil {
			changes, err = appendChange(changes, head, rest)
		}
		if err != nil {
			return nil, err
		}
	}
}

func rawChanges() []string {
	return []string{"-r", "-z", "--raw", "--no-renames", "--no-abbrev"}
}

// EachChanges gives visit what each commit changes against its first parent, or
// all that it holds if it has none. One git does it for all of them.
func (r *Repo) EachChanges(ctx context.Context, commits []*Commit, visit func(*Commit, []Change) error) error {
	if len(commits) == 0 {
		return nil
	}
	var pairs strings.Builder
	for _, c := range commits {
		fmt.Fprintln(&pairs, strings.Join(append([]string{c.ID}, c.Parents[:min(1, len(c.Parents))]...), " "))
	}
	args := append(append([]string{"diff-tree", "--stdin"}, rawChanges()...), "--root", "--always")
	return r.stream(ctx, pairs.String(), func(from *bufio.Reader) error {
		next, err := field(from)
		if err != nil {
			return err
		}
		for _, c := range commits {
			if next != c.ID+"\x00" {
				return fmt.Errorf("git diff-tree: %q instead of commit %s", next, c.ID)
			}
			changes, err := changesOf(from, &next)
			if err != nil {
				return err
			}
			if err := visit(c, changes); err != nil {
				return err
			}
		}
		return nil
	}, args...)
}

// changesOf reads up to the next commit, or the end.
func changesOf(from *bufio.Reader, next *string) (changes []Change, err error) {
	for left := MaxOutput; ; {
		head, err := field(from)
		if errors.Is(err, io.EOF) && head == "" {
			*next = ""
			return changes, nil
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(head, ":") {
			*next = head
			return changes, nil
		}
		if changes, err = appendChange(changes, head, from); err != nil {
			return nil, err
		}
		if left -= len(head) + len(changes[len(changes)-1].Path); left < 0 {
			return nil, fmt.Errorf("git diff-tree: %w (%d bytes)", confined.ErrTooMuch, MaxOutput)
		}
	}
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

// maxField bounds a field that ends with a zero byte, for example a path, and is
// the size of read buffers: an agent chooses its length.
const maxField = 64 << 10

// field reads up to and including a zero byte.
func field(from *bufio.Reader) (string, error) {
	text, err := from.ReadSlice(0)
	if errors.Is(err, bufio.ErrBufferFull) {
		err = fmt.Errorf("git diff-tree: %w (%d bytes in one path)", confined.ErrTooMuch, len(text))
	}
	return string(text), err
}

// appendChange reads ":old new oldid newid status\0path\0", of which the first
// part is head.
func appendChange(changes []Change, head string, from *bufio.Reader) ([]Change, error) {
	path, err := field(from)
	if errors.Is(err, confined.ErrTooMuch) {
		return nil, err
	}
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(head, ":"), "\x00"))
	if err != nil || len(fields) != 5 || !strings.HasPrefix(head, ":") {
		return nil, fmt.Errorf("git diff-tree: cannot read %q", head)
	}
	return append(changes, Change{Path: path[:len(path)-1], OldMode: fields[0], NewMode: fields[1], OldID: fields[2], NewID: fields[3]}), nil
}

// Conflicts returns the paths at which a merge of two commits has conflicts.
func (r *Repo) Conflicts(ctx context.Context, ours, theirs string) ([]string, error) {
	out, err := r.Output(ctx, nil, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
	if failed, ok := errors.AsType[*confined.Error](err); !ok || failed.Exit() != 1 {
		return nil, err
	}
	_, paths, _ := strings.Cut(string(out), "\x00")
	return strings.FieldsFunc(paths, func(r rune) bool { return r == 0 }), nil
}
