package checkout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
)

// shell runs a script of a person in a directory.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=p", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=p@localhost",
		"GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository with one commit, and returns its top level.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shell(t, dir, "git init -q -b main project && cd project && echo one > a && git add a && git commit -qm one")
	return filepath.Join(dir, "project")
}

func open(t *testing.T, dir string) *checkout.Checkout {
	t.Helper()
	c, err := checkout.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every layout of a repository is found, and what only claims to be one is not.
func TestOpen(t *testing.T) {
	top := repository(t)
	around := filepath.Dir(top)
	shell(t, around, `git -C project worktree add -q ../linked && git clone -q project super && git -C super submodule add -q `+top+` sub && git -C super commit -qm sub
git init -q unborn; git init -q --bare bare.git; mkdir -p plain project/deep/er lying outside; echo gitdir: `+top+`/.git > lying/.git; mkdir linkdir; ln -s ../project/.git linkdir/.git`)
	for dir, common := range map[string]string{
		"project": "project/.git", "project/deep/er": "project/.git", "linked": "project/.git", "super": "super/.git", "super/sub": "super/.git/modules/sub", "unborn": "unborn/.git",
	} {
		c := open(t, filepath.Join(around, dir))
		if c.Common != filepath.Join(around, common) {
			t.Errorf("%s: %+v", dir, c)
		}
		if id, ref, err := c.Head(); err != nil || (id == "") != (dir == "unborn") || ref == "" {
			t.Errorf("%s: HEAD is %q of %q, %v", dir, id, ref, err)
		}
	}
	for dir, want := range map[string]string{"plain": "not in a git checkout", "bare.git": "without a work tree", "lying": "neither a repository nor", "linkdir": "not supported"} {
		if _, err := checkout.Open(filepath.Join(around, dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Refs are those that git lists, loose and packed ones.
func TestRefs(t *testing.T) {
	top := repository(t)
	shell(t, top, "git branch packed && git tag -a -m t v1 && git pack-refs --all && git commit -q --allow-empty -m two && git branch loose && git branch -f packed")
	c := open(t, top)
	refs, err := c.Refs()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shell(t, top, "git for-each-ref --format='%(refname) %(objectname)'") + "\n") {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if refs[name] != id {
			t.Errorf("%s is %q, not %q", name, refs[name], id)
		}
		delete(refs, name)
	}
	if len(refs) > 0 {
		t.Errorf("there are no refs %v", refs)
	}
	shell(t, top, "echo rubbish > .git/refs/heads/bad")
	if _, err := c.Refs(); err == nil {
		t.Error("a ref that is no commit was read")
	}
}

// A branch that a work tree stands on, or rebases, is in use there.
func TestUsedIn(t *testing.T) {
	top := repository(t)
	other := filepath.Join(filepath.Dir(top), "other")
	shell(t, top, `git branch free; git worktree add -q -b side ../other; git checkout -q -b work; echo x > a; git commit -qam x; git checkout -q main; echo y > a; git commit -qam y
git -C ../other checkout -q work; git -C ../other rebase -q main 2>/dev/null || true`)
	for ref, want := range map[string]string{"refs/heads/main": top, "refs/heads/work": other, "refs/heads/free": "", "refs/heads/side": ""} {
		for _, from := range []string{top, other} {
			if got, err := open(t, from).UsedIn(ref); err != nil || got != want {
				t.Errorf("%s from %s: %q, %v; want %q", ref, from, got, err, want)
			}
		}
	}
}

// A ref is moved from where it was seen, and never beside one it collides with.
func TestMoveRef(t *testing.T) {
	top := repository(t)
	head := shell(t, top, "git branch packed/one && git pack-refs --all && git rev-parse HEAD")
	next := shell(t, top, "git commit-tree -p HEAD -m next HEAD^{tree}")
	w, err := open(t, top).Writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct {
		ref, to, seen, want string
	}{
		{"refs/heads/new", head, "", ""},
		{"refs/heads/new", head, "", ""}, // it is there already
		{"refs/heads/new", next, "", "moved meanwhile"},
		{"refs/heads/new", next, head, ""},
		{"refs/heads/packed/one", next, head, ""},
		{"refs/heads/packed", head, "", "cannot be beside packed/one"},
		{"refs/heads/packed/one/two", head, "", "not a directory"},
		{"refs/heads/../../config", head, "", "not the name of a ref"},
		{"config", head, "", "not the name of a ref"},
	} {
		err := w.MoveRef(c.ref, c.to, c.seen)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: %v, want %q", c.ref, c.to, err, c.want)
		}
	}
	shell(t, top, "touch .git/refs/heads/busy.lock")
	if err := w.MoveRef("refs/heads/busy", head, ""); err == nil || !strings.Contains(err.Error(), "at this moment") {
		t.Errorf("a ref that git has locked: %v", err)
	}
	if got := shell(t, top, "git rev-parse new packed/one; ls .git/refs/heads/*.lock"); got != next+"\n"+next+"\n.git/refs/heads/busy.lock" {
		t.Errorf("the refs are %s", got)
	}
}
