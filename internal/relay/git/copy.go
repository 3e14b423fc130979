package git

import (
	"context"
	"errors"
	"strings"
)

// copied is where the names of a copied repository are.
const copied = "refs/copied/"

// Copy fetches all refs of a repository of this host, without running git in it.
func (r *Repo) Copy(ctx context.Context, dir string) error {
	from := &Remote{URL: dir}
	_, err := r.remote(ctx, from, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
		"--", from.URL, "+HEAD:"+copied+"HEAD", "+refs/*:"+copied+"*")
	return err
}

// FindCopied resolves a name as the copied repository would: HEAD, a branch, a
// tag, a branch of a remote, or a whole id, with steps such as ~3 after it.
func (r *Repo) FindCopied(ctx context.Context, name string) (string, error) {
	steps := ""
	if at := strings.IndexAny(name, "~^"); at >= 0 {
		name, steps = name[:at], name[at:]
	}
	candidates := []string{copied + name, copied + "heads/" + name, copied + "tags/" + name, copied + "remotes/" + name, copied + strings.TrimPrefix(name, "refs/")}
	if IsID(name) {
		candidates = []string{name}
	}
	for _, candidate := range candidates {
		if id, err := r.Resolve(ctx, candidate+steps); err == nil {
			return id, nil
		}
	}
	return "", errors.New("unknown name")
}
