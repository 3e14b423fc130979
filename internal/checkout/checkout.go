// Package checkout finds and reads git repositories that a person works in, and
// adds packs and refs to them as files. It never runs git, so nothing that a
// repository's configuration or hooks name is executed.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Checkout is a repository with a work tree. The work tree, the index and a branch
// that is checked out are never written.
type Checkout struct {
	Top    string // the work tree
	Dir    string // the work tree's own part of the repository: HEAD, index
	Common string // what all work trees share: objects, refs, config
}

// ErrNone means that a directory is in no work tree. ErrBare means that it is in a
// repository without one.
var (
	ErrNone = errors.New("not in a git checkout")
	ErrBare = errors.New("a git repository without a work tree")
)

// Open finds the work tree that a directory is in.
func Open(dir string) (*Checkout, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; at = filepath.Dir(at) {
		found, err := At(at)
		if !errors.Is(err, ErrNone) {
			return found, err
		}
		if at == filepath.Dir(at) {
			return nil, ErrNone
		}
	}
}

// At opens the work tree whose top level is a directory: ErrNone if it is none.
func At(top string) (*Checkout, error) {
	c, err := find(top)
	if err != nil {
		return nil, err
	}
	return c, c.check()
}

// find finds the repository of a work tree, in whatever format.
func find(top string) (*Checkout, error) {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(git)
	switch {
	case err == nil && info.IsDir():
		return &Checkout{top, git, git}, nil
	case err == nil && info.Mode().IsRegular():
		return openLinked(top)
	case err == nil:
		return nil, fmt.Errorf("%s is neither a directory nor a file, which is not supported", git)
	case isRepository(top):
		return nil, fmt.Errorf("%s: %w", top, ErrBare)
	}
	return nil, ErrNone
}

// openLinked opens a work tree whose .git is a file: a linked work tree or a
// submodule. It and its repository must name each other: a file that only names a
// repository could name any.
func openLinked(top string) (*Checkout, error) {
	bad := errhint.With(fmt.Errorf("%s is neither a repository nor a work tree of one", top), "set relay.repository in the configuration")
	dir, ok := strings.CutPrefix(firstLine(filepath.Join(top, ".git")), "gitdir: ")
	if !ok {
		return nil, bad
	}
	dir = joinPath(top, dir)
	back, common := firstLine(filepath.Join(dir, "gitdir")), firstLine(filepath.Join(dir, "commondir"))
	if common != "" && samePath(joinPath(dir, back), filepath.Join(top, ".git")) {
		return &Checkout{top, dir, joinPath(dir, common)}, nil
	}
	if isRepository(dir) && samePath(workTreeOf(dir), top) {
		return &Checkout{top, dir, dir}, nil
	}
	return nil, bad
}

// Linked reports whether the repository lies outside of the work tree's .git.
func (c *Checkout) Linked() bool { return c.Common != filepath.Join(c.Top, ".git") }

// workTreeOf returns the work tree that a repository's configuration names, as
// those of submodules do; "" if it names none.
func workTreeOf(dir string) string {
	entries, err := readConfig(filepath.Join(dir, "config"))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if e.name() == "core.worktree" {
			return joinPath(dir, e.value)
		}
	}
	return ""
}

// isRepository reports whether a directory has the parts of a repository.
func isRepository(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return firstLine(filepath.Join(dir, "HEAD")) != ""
}

// samePath reports whether two paths name one existing file.
func samePath(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil || a == "" {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func joinPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// check refuses repositories in formats that this package cannot read.
func (c *Checkout) check() error {
	if exists(filepath.Join(c.Common, "reftable")) {
		return errhint.With(fmt.Errorf("the checkout %s keeps its refs in a format that is not supported", c.Top),
			"`git refs migrate --ref-format=files` changes it, or set relay.repository in the configuration")
	}
	return nil
}

// CheckComplete refuses a repository that has only a part of its history.
func (c *Checkout) CheckComplete() error {
	if exists(filepath.Join(c.Common, "shallow")) {
		return errhint.With(fmt.Errorf("the checkout %s has only a part of its history", c.Top),
			"`git fetch --unshallow` brings the rest, or set relay.repository in the configuration")
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
