package deliver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// Check judges commits of a local repository as those of an agent are. It looks
// at a copy: in the directory itself git would run what its configuration names.
func (r *Relays) Check(ctx context.Context, dir, base, head string) (*content.Report, error) {
	dir, err := gitDir(dir)
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "atoll-relay-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // nothing of it is needed
	repo, err := git.Init(ctx, filepath.Join(temporary, "copy.git"), confined.Limits{Memory: 8 << 30, File: 32 << 30})
	if err != nil {
		return nil, err
	}
	if err := repo.Copy(ctx, dir); err != nil {
		return nil, err
	}
	from, err := repo.FindCopied(ctx, base)
	if err != nil {
		return nil, noSuch(base, dir, err)
	}
	to, err := repo.FindCopied(ctx, head)
	if err != nil {
		return nil, noSuch(head, dir, err)
	}
	return content.Judge(ctx, repo, from, to, r.Policy())
}

func noSuch(name, dir string, err error) error {
	return errhint.With(fmt.Errorf("there is no commit %q in %s: %w", name, dir, err), "name a branch, a tag or HEAD, also as main~3")
}

// gitDir finds the repository that a directory is in.
func gitDir(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		for _, candidate := range []string{filepath.Join(at, ".git"), at} {
			if _, err := os.Stat(filepath.Join(candidate, "objects")); err == nil {
				return candidate, nil
			}
		}
		if link, err := os.ReadFile(filepath.Join(at, ".git")); err == nil && strings.HasPrefix(string(link), "gitdir: ") {
			return at, nil // a worktree: git knows the rest
		}
		if at == filepath.Dir(at) {
			return "", errhint.With(fmt.Errorf("%s is in no git repository", start), "say where it is with --repo")
		}
	}
}
