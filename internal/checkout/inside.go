package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Inside is how a sandbox sees a directory and the repositories in it.
type Inside struct {
	outside *Checkout // whose repository lies outside of the directory; nil if there is none
	bare    bool      // the directory is itself a repository
	target  string    // where the sandbox sees the directory
}

// InsideOf returns how a sandbox sees a directory at target.
func InsideOf(base, target string) *Inside {
	v := &Inside{target: target}
	found, err := find(base)
	switch {
	case err == nil && found.Linked():
		v.outside = found
	case errors.Is(err, ErrBare):
		v.bare = true
	}
	return v
}

// GitTree returns the directory of the repository that lies outside of the work
// tree, and where the sandbox sees it; "" if there is none.
func (v *Inside) GitTree() (dir, target string) {
	if v.outside == nil {
		return "", ""
	}
	return v.outside.Common, v.target + ".git"
}

// View is what a sandbox sees in place of a file of the host.
type View struct {
	Hidden  bool
	Instead []byte // nil if it sees no file at all
}

// maxView bounds a file that is read to be shown without credentials.
const maxView = maxConfig

// ReadFunc reads at most limit bytes of a file; more are an error.
type ReadFunc func(limit int64) ([]byte, error)

// WorkTree returns the view of a file of the directory, by its path below it. It
// covers the repositories inside: its own and those of submodules and of vendored
// copies. On an error the file is not to be shown.
func (v *Inside) WorkTree(name string, read ReadFunc) (View, error) {
	if name == ".git" && v.outside != nil {
		_, target := v.GitTree()
		own, err := filepath.Rel(v.outside.Common, v.outside.Dir)
		return View{true, []byte("gitdir: " + path.Join(target, filepath.ToSlash(own)) + "\n")}, err
	}
	if v.bare {
		return viewOf(name, name, "", read)
	}
	if below, ok := belowGit(name); ok {
		return viewOf(name, below, "", read)
	}
	return View{}, nil
}

// GitFile returns the view of a file of the repository outside of the work tree,
// by its path below GitTree.
func (v *Inside) GitFile(name string, read ReadFunc) (View, error) {
	workTree := ""
	if name == "config" {
		workTree = v.target // a submodule's names the host's
	}
	return viewOf(name, name, workTree, read)
}

// belowGit returns the part of a path after its .git, in any spelling of case.
func belowGit(name string) (string, bool) {
	elements := strings.Split(name, "/")
	for i, element := range elements[:len(elements)-1] {
		if strings.EqualFold(element, ".git") {
			return strings.Join(elements[i+1:], "/"), true
		}
	}
	return "", false
}

// viewOf decides by the path below a .git directory.
func viewOf(name, below, workTree string, read ReadFunc) (View, error) {
	switch base := path.Base(below); {
	case holdsKeys(below):
		return View{Hidden: true}, nil
	case base != "config" && base != "config.worktree" || !isConfigDir(path.Dir(below)):
		return View{}, nil
	}
	text, err := read(maxView)
	if errors.Is(err, fs.ErrNotExist) {
		return View{}, nil
	}
	if err != nil {
		return View{}, err
	}
	shown, err := WithoutCredentials(string(text), workTree)
	if err != nil {
		return View{}, fmt.Errorf("%s: %w", name, err)
	}
	return View{true, []byte(shown)}, nil
}

// holdsKeys reports whether a file below .git holds credentials as a whole.
func holdsKeys(below string) bool {
	first, rest, _ := strings.Cut(strings.ToLower(below), "/")
	switch {
	case first == "git-crypt", first == "annex" && strings.HasPrefix(rest, "creds/"):
		return true
	}
	name := path.Base(strings.ToLower(below))
	return !strings.HasPrefix(below, "refs/") && !strings.HasPrefix(below, "logs/") &&
		(strings.HasPrefix(name, "credentials") || strings.HasPrefix(name, ".git-credentials") || name == "cookies" || name == "cookies.txt" || name == "config.lock")
}

// isConfigDir reports whether a directory below .git can be one that git reads a
// configuration from: the repository itself, a submodule or a work tree.
func isConfigDir(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return dir == "." || strings.EqualFold(first, "modules") || strings.EqualFold(first, "worktrees")
}
