package relay_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// person is somebody who works in a checkout.
type person struct {
	t     *testing.T
	top   string
	relay *relay.Relay
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t, filepath.Join(t.TempDir(), "project"), relay.New(t.TempDir())}
	p.shell(filepath.Dir(p.top), "git init -q -b main project && cd project && git config user.name p && git config user.email p@localhost && echo one > a && git add a && git commit -qm one")
	return p
}

func (p *person) shell(dir, script string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *person) project(dir string) *relay.Project {
	p.t.Helper()
	work, err := checkout.Open(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	return &relay.Project{Checkout: work, Identity: rewrite.Identity{Name: "Atoll", Email: "atoll@localhost"}}
}

// run has an agent do something on a branch, and delivers it.
func (p *person) run(project *relay.Project, key branch.Key, id, script string) (*relay.Record, error) {
	p.t.Helper()
	at := newSandbox(p.t)
	w, err := p.relay.Prepare(p.t.Context(), project, at.site(), key)
	if err != nil {
		return nil, err
	}
	at.shell(p.t, script)
	record, err := p.relay.Take(p.t.Context(), project, at.site(), &relay.TakeRequest{Run: id, Work: *w})
	if err != nil {
		return nil, err
	}
	return record, p.relay.Send(p.t.Context(), project, record)
}

// The commits are a branch of the checkout; what the person has is as it was.
func TestCheckout(t *testing.T) {
	p := newPerson(t)
	p.shell(p.top, "echo two > b && git add b && echo changed > a && echo new > c")
	before := p.shell(p.top, "git status --porcelain=v2 --branch; cat a; sha256sum .git/index; cat .git/HEAD")
	for i, id := range []string{"run-1", "run-2"} {
		if _, err := p.run(p.project(p.top), "work", id, "echo "+id+" >> a; git add -A; git commit -qm "+id); err != nil {
			t.Fatal(err)
		}
		if got := p.shell(p.top, "git log --format=%an:%s main..sandbox/work | wc -l; git fsck --strict 2>&1"); !strings.HasPrefix(got, string(rune('1'+i))) {
			t.Errorf("after %s: %s", id, got)
		}
	}
	if got := p.shell(p.top, "git show sandbox/work:a"); got != "one\nrun-1\nrun-2" {
		t.Errorf("the file has %q", got)
	}
	if after := p.shell(p.top, "git status --porcelain=v2 --branch; cat a; sha256sum .git/index; cat .git/HEAD"); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
}

// Another work tree of the same repository is one too, also from below its top.
func TestCheckoutOfAWorktree(t *testing.T) {
	p := newPerson(t)
	other := filepath.Join(filepath.Dir(p.top), "other")
	p.shell(p.top, "git worktree add -q -b side "+other)
	p.shell(other, "mkdir -p d/e && echo side > s && git add s && git commit -qm side")
	record, err := p.run(p.project(filepath.Join(other, "d", "e")), "work", "run-1", "cat s && echo x > x && git add x && git commit -qm x")
	if err != nil || record.Work.Checkout != other {
		t.Fatalf("%+v, %v", record, err)
	}
	if got := p.shell(p.top, "git log --format=%s main..sandbox/work"); got != "x\nside" {
		t.Errorf("the branch has %q", got)
	}
}

// A branch that is checked out anywhere is not moved, nor one that moved
// meanwhile; packed refs count.
func TestCheckoutRefuses(t *testing.T) {
	p := newPerson(t)
	project := p.project(p.top)
	p.shell(p.top, "git branch sandbox/mine && git worktree add -q ../mine sandbox/mine && git branch sandbox/packed && git pack-refs --all")
	if _, err := p.run(project, "mine", "run-1", "true"); err == nil || !strings.Contains(err.Error(), "is checked out") {
		t.Errorf("a branch that is checked out: %v", err)
	}
	if _, err := p.run(project, "packed", "run-2", "echo x > x; git -C "+p.top+" branch -f sandbox/packed $(git -C "+p.top+" commit-tree -p main -m other main^{tree})"); !errors.Is(err, checkout.ErrMoved) {
		t.Errorf("a branch that moved: %v", err)
	}
	p.shell(filepath.Dir(p.top), "git -C "+p.top+" commit -q --allow-empty -m two && git clone -q --depth 1 file://"+p.top+" shallow && mkdir plain && mkdir lying && echo gitdir: "+p.top+"/.git > lying/.git")
	if _, err := p.run(p.project(filepath.Join(filepath.Dir(p.top), "shallow")), "work", "run-3", "true"); err == nil || !strings.Contains(err.Error(), "only a part of its history") {
		t.Errorf("a shallow repository: %v", err)
	}
	for dir, want := range map[string]string{"plain": "not in a git checkout", "lying": "neither a repository nor"} {
		if _, err := checkout.Open(filepath.Join(filepath.Dir(p.top), dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A checkout comes from anywhere. Nothing that it names is executed, and nothing
// is written outside of it.
//
// Seen to fail with a addBranch that pushes with git.
func TestHostileCheckout(t *testing.T) {
	p := newPerson(t)
	outside := t.TempDir()
	ran := filepath.Join(outside, "ran")
	script := filepath.Join(outside, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $0 $* >> "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core.fsmonitor", "core.alternateRefsCommand", "uploadpack.packObjectsHook", "core.sshCommand", "diff.external", "core.pager"} {
		p.shell(p.top, "git config "+key+" "+script)
	}
	for _, hook := range []string{"reference-transaction", "pre-receive", "update", "post-receive", "post-update", "post-checkout", "proc-receive", "pre-auto-gc"} {
		p.shell(p.top, "cp "+script+" .git/hooks/"+hook)
	}
	if _, err := p.run(p.project(p.top), "work", "run-1", "echo x > x"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("executed: %s", text)
	}
	p.shell(p.top, "mv .git/refs/heads/sandbox .git/moved && ln -s "+outside+" .git/refs/heads/sandbox")
	if _, err := p.run(p.project(p.top), "linked", "run-2", "echo x > x"); err == nil {
		t.Error("a link out of the repository was followed")
	}
	if _, err := os.Stat(filepath.Join(outside, "linked")); err == nil {
		t.Error("a file was written outside")
	}
}
