package trust

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// repository is the git repository that a directory is part of.
type repository struct {
	root   string // the worktree, or the directory itself without a repository
	common string // the repository's own directory, which all worktrees share; "" without one
}

// maxGitFile is the most bytes of git's small files.
const maxGitFile = 4096

// repositoryOf finds the repository of a directory that has no links in its path.
func repositoryOf(dir string) repository {
	for root := dir; ; root = filepath.Dir(root) {
		info, err := os.Lstat(filepath.Join(root, ".git"))
		switch {
		case err == nil && info.IsDir():
			return repository{root, filepath.Join(root, ".git")}
		case err == nil && info.Mode().IsRegular():
			if common := commonOf(root); common != "" {
				return repository{root, common}
			}
			return repository{root: dir}
		case err == nil || root == filepath.Dir(root):
			return repository{root: dir}
		}
	}
}

// commonOf returns the repository of a linked worktree. Both sides have to say
// so: a directory cannot claim to be a worktree of a repository by itself.
func commonOf(root string) string {
	text, ok := strings.CutPrefix(smallFile(root, ".git"), "gitdir: ")
	if !ok {
		return ""
	}
	private := absolute(root, text)
	if absolute(private, smallFile(private, "gitdir")) != filepath.Join(root, ".git") {
		return ""
	}
	common := absolute(private, smallFile(private, "commondir"))
	if filepath.Dir(private) != filepath.Join(common, "worktrees") {
		return ""
	}
	return common
}

// smallFile returns the text of a small file, "" if it cannot be read.
func smallFile(dir, name string) string {
	root, err := hostpath.OpenDir(dir)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	text, err := hostpath.ReadRegularBeneath(root, name, maxGitFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// absolute returns name, seen from dir, without links; "" for no name.
func absolute(dir, name string) string {
	if name == "" {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	at, err := hostpath.Identify(filepath.Clean(name))
	if err != nil {
		return ""
	}
	return at.Canonical
}
