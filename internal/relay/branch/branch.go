// Package branch says which branch the commits of a run go to. A branch belongs
// to a line of work, which several runs and agents continue; it never belongs to
// a run. The package decides and does no I/O.
package branch

import (
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// MaxLength is how many bytes a key may have: with the prefix and a worktree's
// path around it, every name made of it stays below 255.
const MaxLength = 80

// Prefix is before every branch that the relay pushes; it pushes no other.
const Prefix = "sandbox/"

// ThreadMode is the mode in which a conversation names the branch.
const ThreadMode = "thread"

// Key names a line of work. The zero Key means that no commits are wanted.
type Key string

// Request is what a caller says about the branch, from the strongest to the
// weakest. A conversation's key counts only if the mode asks for it: what
// people talk about in one thread is not one piece of work.
type Request struct {
	Branch   string
	WorkItem string
	StateKey string
	Mode     string
	Run      string // never a key
}

// Key decides. An empty key without an error means that the caller wants no
// commits.
func (w *Request) Key() (Key, error) {
	source, text, err := w.source()
	if err != nil || text == "" {
		return "", err
	}
	if w.Run != "" && strings.EqualFold(text, w.Run) {
		return "", errhint.With(fmt.Errorf("%s %q is the id of the run, which is no name for a branch", source, text),
			"name the line of work, so that later runs can continue it")
	}
	key, err := Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return key, nil
}

func (w *Request) source() (source, text string, err error) {
	switch {
	case w.Mode != "" && w.Mode != ThreadMode:
		return "", "", errhint.With(fmt.Errorf("unknown branch mode %q", w.Mode), "the only mode is "+ThreadMode)
	case w.Branch != "":
		return "branch name", w.Branch, nil
	case w.WorkItem != "":
		return "work item", w.WorkItem, nil
	case w.Mode == "":
		return "", "", nil
	case w.StateKey == "":
		return "", "", errhint.With(fmt.Errorf("branch mode %s needs a state key", ThreadMode), "give the key of the conversation, or name a branch")
	}
	return "state key", w.StateKey, nil
}

// Parse takes text as a key if it can be one.
func Parse(text string) (Key, error) {
	for _, rule := range rules() {
		if rule.broken(text) {
			return "", errhint.With(fmt.Errorf("%q cannot name a branch: %s", text, rule.why),
				fmt.Sprintf("use up to %d letters, digits and . _ - /, for example task.0022", MaxLength))
		}
	}
	return Key(text), nil
}

// Branch is the name of the branch.
func (k Key) Branch() string { return Prefix + string(k) }

// Ref is the branch's full name.
func (k Key) Ref() string { return "refs/heads/" + k.Branch() }

// Path is the key as one path element. Different keys have different paths, also
// where case does not count.
func (k Key) Path() string {
	var b strings.Builder
	for _, c := range []byte(k) {
		if isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// Worktree is where the files of a branch are below a directory inside.
func Worktree(root string, k Key) string { return path.Join(root, "wt", k.Path()) }

// Collides reports whether the branches of both cannot exist at once: git keeps
// the one as a file where the other needs a directory.
func (k Key) Collides(other Key) bool {
	return k != other && (strings.HasPrefix(string(k), string(other)+"/") || strings.HasPrefix(string(other), string(k)+"/"))
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}
