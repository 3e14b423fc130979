package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// Checkout is a repository that a person works in. Runs begin at its HEAD, and
// their commits become a branch of it. Its work tree, its index and the branch
// that is checked out are never touched, and nothing that its configuration or
// its hooks name is executed: what is added are a pack and a ref, as files.
type Checkout struct {
	Top    string // the work tree
	dir    string // its own part of the repository
	common string // what all work trees share
}

// ErrNoCheckout means that a directory is in no work tree.
var ErrNoCheckout = errors.New("not in a git checkout")

// OpenCheckout finds the work tree that a directory is in.
func OpenCheckout(dir string) (*Checkout, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(at, ".git"))
		switch {
		case err == nil && info.IsDir():
			return (&Checkout{at, filepath.Join(at, ".git"), filepath.Join(at, ".git")}).check()
		case err == nil && info.Mode().IsRegular():
			return openWorktree(at)
		case at == filepath.Dir(at):
			return nil, ErrNoCheckout
		}
	}
}

// openWorktree opens a linked work tree. It and its repository must name each
// other: a file that only names a repository could name any.
func openWorktree(top string) (*Checkout, error) {
	bad := errhint.With(fmt.Errorf("%s is neither a repository nor a work tree of one", top), "set relay.repository in the configuration")
	dir, ok := strings.CutPrefix(firstLine(filepath.Join(top, ".git")), "gitdir: ")
	if !ok {
		return nil, bad
	}
	dir = joinPath(top, dir)
	back, common := firstLine(filepath.Join(dir, "gitdir")), firstLine(filepath.Join(dir, "commondir"))
	if common == "" || joinPath(dir, back) != filepath.Join(top, ".git") {
		return nil, bad
	}
	return (&Checkout{top, dir, joinPath(dir, common)}).check()
}

func joinPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// maxGitFile bounds what is read of the small files of a repository.
const maxGitFile = 4 << 10

func firstLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text := make([]byte, maxGitFile)
	n, _ := file.Read(text)
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	return strings.TrimSpace(line)
}

func (c *Checkout) check() (*Checkout, error) {
	for name, problem := range map[string][2]string{
		"shallow":  {"has only a part of its history", "`git fetch --unshallow` brings the rest"},
		"reftable": {"keeps its refs in a format that is not supported", "`git refs migrate --ref-format=files` changes it"},
	} {
		if _, err := os.Stat(filepath.Join(c.common, name)); err == nil {
			return nil, errhint.With(fmt.Errorf("the checkout %s %s", c.Top, problem[0]), problem[1]+", or set relay.repository in the configuration")
		}
	}
	return c, nil
}

// checkNotInUse refuses a branch that is checked out in a work tree: moving it
// would change what that work tree stands on.
func (c *Checkout) checkNotInUse(key branch.Key) error {
	heads := []string{filepath.Join(c.common, "HEAD")}
	others, err := filepath.Glob(filepath.Join(c.common, "worktrees", "*", "HEAD"))
	if err != nil {
		return err
	}
	for _, head := range append(heads, others...) {
		if firstLine(head) == "ref: "+key.Ref() {
			return errhint.With(fmt.Errorf("%s is checked out in %s", key.Branch(), c.Top), "check out another branch, or name another with --branch")
		}
	}
	return nil
}

// refreshCheckout fetches the base and the branch of the checkout into the mirror.
func (r *Relay) refreshCheckout(ctx context.Context, p *Project, mirror *git.Repo, key branch.Key) (Heads, error) {
	if err := p.Checkout.checkNotInUse(key); err != nil {
		return Heads{}, err
	}
	remote := &git.Remote{URL: p.Checkout.Top}
	found, err := mirror.Heads(ctx, remote, p.baseRef(), "refs/heads/"+branch.Prefix+"*")
	if err != nil {
		return Heads{}, err
	}
	if err := checkCollisions(key, found); err != nil {
		return Heads{}, err
	}
	heads := Heads{Base: found[p.baseRef()], Branch: found[key.Ref()]}
	if heads.Base == "" {
		return Heads{}, errhint.With(fmt.Errorf("the checkout %s has no commit at %s", p.Checkout.Top, p.baseRef()), "commit something first")
	}
	refs := []string{p.baseRef()}
	if heads.Branch != "" {
		refs = append(refs, key.Ref())
	}
	return heads, mirror.FetchTo(ctx, remote, "refs/checkout/", refs...)
}

// addBranch sets a branch of the checkout to the record's head, if the branch is
// still where it was last seen; "" means that it did not exist.
func (c *Checkout) addBranch(ctx context.Context, repo *git.Repo, record *Record) error {
	key := record.Work.Key
	if err := c.checkNotInUse(key); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &gitWriter{root: root, owner: ownerOf(c.common)}
	if err := w.addPack(ctx, repo, record.Head, record.Work.Tip()); err != nil {
		return fmt.Errorf("add the commits to %s: %w", c.Top, err)
	}
	if err := w.moveRef(key.Ref(), record.Head, record.Work.Seen); err != nil {
		return fmt.Errorf("add %s to %s: %w", key.Branch(), c.Top, err)
	}
	return nil
}

// refValue reads a ref of the repository; "" if it does not exist.
func (w *gitWriter) refValue(ref string) (string, error) {
	text, err := w.root.ReadFile(ref)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	packed, err := w.root.ReadFile("packed-refs")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	lines := strings.Split(string(packed), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, " "+ref) })
	if err != nil || at < 0 {
		return "", err
	}
	id, _, _ := strings.Cut(lines[at], " ")
	return id, nil
}
