package checkout_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
)

// reveal makes a copy of a directory as a sandbox sees it.
func reveal(t *testing.T, from, to string, view func(string, checkout.ReadFunc) (checkout.View, error)) {
	t.Helper()
	shell(t, filepath.Dir(to), "cp -a '"+from+"' '"+to+"'")
	err := filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(to, path)
		seen, err := view(rel, func(int64) ([]byte, error) { return os.ReadFile(path) })
		if err != nil || !seen.Hidden {
			return err
		}
		if seen.Instead == nil {
			return os.Remove(path)
		}
		return os.WriteFile(path, seen.Instead, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// In a sandbox git works in every layout, and finds no credential.
func TestInside(t *testing.T) {
	top := repository(t)
	around := filepath.Dir(top)
	shell(t, around, `git -C project worktree add -q ../linked && git clone -q project super && git -C super submodule add -q `+top+` sub && git -C super commit -qm sub
mkdir -p project/.git/git-crypt/keys project/vendor && cp -r super/.git project/vendor/x.git && mkdir project/vendor/y && mv project/vendor/x.git project/vendor/y/.git
for r in project/.git super/.git super/.git/modules/sub project/vendor/y/.git; do git --git-dir=$r config remote.o.url https://u:`+canary+`@h/x; git --git-dir=$r config http.extraHeader `+canary+`; echo `+canary+` > $r/credentials; done
echo `+canary+` > project/.git/git-crypt/keys/default`)
	for _, dir := range []string{"project", "linked", "super", "super/sub"} {
		t.Run(dir, func(t *testing.T) {
			root := t.TempDir()
			target := filepath.Join(root, "workspace")
			v := checkout.InsideOf(filepath.Join(around, dir), target)
			reveal(t, filepath.Join(around, dir), target, v.WorkTree)
			if git, at := v.GitTree(); git != "" {
				reveal(t, git, at, v.GitFile)
			}
			if got := shell(t, target, "git rev-parse --show-toplevel && git status --porcelain && git checkout -q -b inside && echo new > new && git add new && git commit -qm new && git log -1 --format=%s"); got != target+"\nnew" && got != target+"\n?? vendor/\nnew" {
				t.Errorf("git inside says %q", got)
			}
			if got := shell(t, root, "grep -r -l "+canary+" . || true"); got != "" {
				t.Errorf("credentials are in %s", got)
			}
		})
	}
	shell(t, around, "cp -a project/.git bare.git && git --git-dir=bare.git config core.bare true")
	for _, dir := range []string{"project/vendor", "bare.git"} {
		root := t.TempDir()
		target := filepath.Join(root, "workspace")
		v := checkout.InsideOf(filepath.Join(around, dir), target)
		reveal(t, filepath.Join(around, dir), target, v.WorkTree)
		if git, _ := v.GitTree(); git != "" {
			t.Errorf("%s has a repository %s outside", dir, git)
		}
		if got := shell(t, root, "grep -r -l "+canary+" . || true"); got != "" {
			t.Errorf("%s: credentials are in %s", dir, got)
		}
	}
}

// A configuration that cannot be read is an error, not a view of all of it.
func TestInsideFailsClosed(t *testing.T) {
	v := checkout.InsideOf(repository(t), "/workspace")
	for _, name := range []string{".git/config", ".GIT/config", "a/.git/modules/b/config", ".git/worktrees/x/config.worktree"} {
		broken := errors.New("broken")
		if _, err := v.WorkTree(name, func(int64) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("%s that cannot be read: %v", name, err)
		}
		if _, err := v.WorkTree(name, func(int64) ([]byte, error) { return []byte("[x"), nil }); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s that is no configuration: %v", name, err)
		}
	}
}
