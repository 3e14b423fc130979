package take

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
)

// maxTips is how many commits of the host are named to the sandbox so that it
// sends less.
const maxTips = 2000

// tips returns the commits that the host's repository has by its refs, the one
// that is checked out first. Refs of earlier takes do not count: they are no place
// where a person looks for commits.
func tips(c *checkout.Checkout) ([]string, error) {
	head, _, err := c.Head()
	if err != nil {
		return nil, err
	}
	refs, err := c.Refs()
	if err != nil {
		return nil, err
	}
	ids := []string{}
	if head != "" {
		ids = append(ids, head)
	}
	for _, prefix := range []string{heads, "refs/remotes/", "refs/tags/"} {
		var more []string
		for ref, id := range refs {
			if strings.HasPrefix(ref, prefix) && id != head {
				more = append(more, id)
			}
		}
		slices.Sort(more)
		ids = append(ids, slices.Compact(more)...)
	}
	return ids, nil
}

// limits are wider than those of quarantines that borrow nothing: the person's
// packs are mapped into memory.
func limits() confined.Limits { return confined.Limits{Memory: 8 << 30} }

// open returns the quarantine of a commit, which sees the host's objects. It is
// made if it is not there.
func (w *Workspace) open(ctx context.Context, head string) (*git.Repo, error) {
	dir := filepath.Join(w.State, head+".git")
	if _, err := os.Stat(dir); err == nil {
		now := time.Now()
		if err := os.Chtimes(dir, now, now); err != nil {
			return nil, err
		}
		return git.Open(dir, limits())
	}
	if strings.ContainsAny(w.Checkout.Common, "\n") {
		return nil, fmt.Errorf("the path of the repository %q has a line break", w.Checkout.Common)
	}
	host, err := git.Open(w.Checkout.Common, limits()) // only its objects are named
	if err != nil {
		return nil, err
	}
	repo, err := git.Init(ctx, dir, limits(), host)
	if err != nil {
		return nil, err
	}
	return repo, errors.Join(w.copyShallow(dir), w.prune(dir))
}

// copyShallow notes where the host's history is cut off.
func (w *Workspace) copyShallow(dir string) error {
	ends, err := w.Checkout.Shallow()
	if err != nil || len(ends) == 0 {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "shallow"), []byte(strings.Join(ends, "\n")+"\n"), 0o600)
}

// maxKept is how many quarantines are kept, so that what another process shows
// does not vanish.
const maxKept = 4

// prune removes the quarantines that were used least lately.
func (w *Workspace) prune(current string) error {
	dirs, err := filepath.Glob(filepath.Join(w.State, "*.git"))
	if err != nil || len(dirs) <= maxKept {
		return err
	}
	slices.SortFunc(dirs, func(a, b string) int { return usedAt(b).Compare(usedAt(a)) })
	for _, dir := range dirs[maxKept:] {
		if dir != current {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// usedAt returns when a quarantine was last used; the zero time if it is gone.
func usedAt(dir string) time.Time {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// commitsOf returns the commits among objects, those that tags name included.
func commitsOf(ctx context.Context, repo *git.Repo, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	peeled := make([]string, len(ids))
	for i, id := range ids {
		peeled[i] = id + "^{commit}"
	}
	objects, err := repo.Stat(ctx, peeled)
	if err != nil {
		return nil, err
	}
	var commits []string
	for _, o := range objects {
		if o.Type == "commit" {
			commits = append(commits, o.ID)
		}
	}
	return commits, nil
}

// fetch fills a quarantine with what a ref of the sandbox has, unless it is whole
// already.
func (w *Workspace) fetch(ctx context.Context, repo *git.Repo, ref, head string, known []string) error {
	objects, err := repo.Stat(ctx, []string{head})
	if err != nil {
		return err
	}
	if objects[0].Type == "commit" && repo.CheckComplete(ctx, known, head) == nil {
		return nil
	}
	got, err := w.importBundle(ctx, repo, ref, known)
	switch {
	case err != nil:
		return errors.Join(err, repo.Remove())
	case got != head:
		return errors.Join(ErrChanged, repo.Remove())
	}
	return nil
}

// importBundle streams a bundle from git in the sandbox into the quarantine.
func (w *Workspace) importBundle(ctx context.Context, repo *git.Repo, ref string, known []string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := w.Sandbox.Exec(ctx, w.bundle(ref, known, in))
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	head, err := quarantine.ImportBeside(ctx, repo, known, out, w.maxBytes())
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if err != nil {
		cancel()
	}
	if sent := <-done; sent != nil && (err == nil || !errors.Is(sent, relay.ErrProgram)) && ctx.Err() == nil {
		err = fmt.Errorf("git in the sandbox: %w", sent) // the sandbox is at fault, not the bundle
	}
	return head, err
}

// bundle is the program in the sandbox that writes a bundle of what a ref has and
// the host has not. What the sandbox lacks of the host's commits does not count.
func (w *Workspace) bundle(ref string, known []string, to io.Writer) *machine.Command {
	var input strings.Builder
	for _, id := range known[:min(len(known), maxTips)] {
		fmt.Fprintf(&input, "^%s\n", id)
	}
	return &machine.Command{
		Argv: []string{"git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-C", w.Dir,
			"bundle", "create", "--quiet", "--version=2", "-", ref, "--ignore-missing", "--stdin"},
		Dir: "/", Stdin: strings.NewReader(input.String()), Stdout: to,
	}
}
