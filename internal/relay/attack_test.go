package relay_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
)

// The credential is in the host's environment in every test of this package, and
// every sandbox, every directory of the relay and every remote is searched for it.
func TestMain(m *testing.M) {
	if err := os.Setenv("GITHUB_TOKEN", canary); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// clean reports files below a directory that hold the credential.
func clean(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("the credential is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// trap is a host whose own configuration of git runs a program wherever it can.
type trap struct{ trip, log string }

func setTrap(t *testing.T) *trap {
	t.Helper()
	home := t.TempDir()
	tr := &trap{trip: filepath.Join(home, "executed"), log: filepath.Join(home, "log")}
	touch := "touch " + tr.trip
	config := "[core]\n\thooksPath = " + home + "/hooks\n\tfsmonitor = " + touch + "\n\tattributesFile = " + home + "/attributes\n[init]\n\ttemplateDir = " + home + "/template\n" +
		"[filter \"lfs\"]\n\tclean = " + touch + "\n\tsmudge = " + touch + "\n\tprocess = " + touch + "\n\trequired = true\n[diff]\n\texternal = " + touch + "\n[diff \"lfs\"]\n\ttextconv = " + touch + "\n" +
		"[credential]\n\thelper = !" + touch + "\n[submodule]\n\trecurse = true\n[protocol]\n\tallow = always\n"
	for name, text := range map[string]string{".gitconfig": config, "attributes": "* filter=lfs diff=lfs\n"} {
		writeFile(t, filepath.Join(home, name), text, 0o600)
	}
	for _, dir := range []string{"hooks", "template/hooks"} {
		for _, hook := range []string{"pre-push", "post-checkout", "reference-transaction", "pre-receive", "update", "post-index-change"} {
			writeFile(t, filepath.Join(home, dir, hook), "#!/bin/sh\n"+touch+"\n", 0o700)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GIT_TEMPLATE_DIR", filepath.Join(home, "template"))
	writeFile(t, filepath.Join(home, "new", "file"), "x", 0o600)
	_ = exec.CommandContext(t.Context(), "sh", "-c", "cd "+home+"/new && git init -q && git add -A").Run() // it fails, after it was caught
	if err := os.Remove(tr.trip); err != nil {
		t.Fatalf("the trap does not work: %v", err)
	}
	return tr
}

func writeFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (tr *trap) check(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(tr.trip); err == nil {
		t.Error("a program of the host's configuration was run")
	}
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// Attributes in one commit and a file in the next name a filter that the host's
// user has: nothing is filtered, and a pointer of LFS is a text like any other.
func TestAttack33_FiltersAndHooksOfTheHost(t *testing.T) {
	tr, h, p := setTrap(t), newHost(t), newSandbox(t)
	w := h.prepare(p, "lfs")
	p.work(t, "attributes", map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs\n"})
	p.work(t, "pointer", map[string]string{"a.bin": pointer})
	record := h.take(p, w, "run-1")
	if record.Step != relay.Waiting {
		t.Fatalf("%+v", record)
	}
	if err := h.relay.Approve(record, "anna"); err != nil {
		t.Fatal(err)
	}
	h.send(record)
	tr.check(t)
	if got := h.server.Git(t, "project.git", "show", "sandbox/lfs:a.bin"); got+"\n" != pointer {
		t.Errorf("the pointer is %q", got)
	}
}

// A message that git am would take for more patches is none: not in what is
// pushed, and not in the patch that the host renders for people to apply.
func TestAttack33_MessageThatIsAPatch(t *testing.T) {
	const workflow = ".github/workflows/evil.yml"
	for name, message := range map[string]string{
		"a diff of git":  "x\n\n---\ndiff --git a/" + workflow + " b/" + workflow + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + workflow + "\n@@ -0,0 +1 @@\n+on: push",
		"a quoted path":  "x\n\n---\ndiff --git \"a/\\056github/workflows/evil.yml\" \"b/\\056github/workflows/evil.yml\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\056github/workflows/evil.yml\"\n@@ -0,0 +1 @@\n+on: push",
		"a classic diff": "x\n\n---\n--- /dev/null\n+++ b/" + workflow + "\n@@ -0,0 +1 @@\n+on: push",
		"another mail":   "x\n\nFrom 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Boss <boss@example.com>\nSubject: [PATCH] y\n\n---\ndiff --git a/evil b/evil\nnew file mode 100644\n--- /dev/null\n+++ b/evil\n@@ -0,0 +1 @@\n+evil",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := newHost(t), newSandbox(t)
			w := h.prepare(p, "work")
			p.work(t, message, map[string]string{"real": "1\n"})
			record := h.take(p, w, "run-1")
			h.send(record)
			if got := h.server.Git(t, "project.git", "diff", "--name-only", "main", "sandbox/work"); got != "real" {
				t.Errorf("pushed: %s", got)
			}
			text, err := h.relay.LoadPatch(record)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.apply(text); got != "real" {
				t.Errorf("git am makes %q of\n%s", got, text)
			}
		})
	}
}

// apply is what a person gets who applies a patch to a clone of main.
func (h *host) apply(patch []byte) string {
	h.t.Helper()
	reader := &sandbox{root: h.t.TempDir()}
	dir := filepath.Join(reader.root, "clone")
	reader.git(h.t, "/", "clone", "-q", "-b", "main", h.server.Dir("project.git"), dir)
	if err := reader.Exec(h.t.Context(), &machine.Command{
		Argv: []string{"git", "-C", dir, "-c", "user.name=r", "-c", "user.email=r@example.com", "am", "-q"}, Dir: "/", Stdin: bytes.NewReader(patch),
	}); err != nil {
		h.t.Fatal(err)
	}
	return reader.git(h.t, dir, "diff", "--name-only", "origin/main", "HEAD")
}

// Whatever else an agent calls its commits, one branch is pushed and nothing of
// the remote is moved or removed.
func TestAttack_OtherNames(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "work")
	main := h.server.Git(t, "project.git", "rev-parse", "main")
	p.work(t, "x", map[string]string{"x": "x"})
	for _, ref := range []string{"refs/tags/v1", "refs/heads/main", "refs/heads/sandbox/other", "refs/notes/commits", "refs/replace/" + main} {
		p.git(t, w.Dir, "update-ref", ref, "HEAD")
	}
	h.send(h.take(p, w, "run-1"))
	if got := h.server.Git(t, "project.git", "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/sandbox/work" {
		t.Errorf("the server has %s", got)
	}
	if got := h.server.Git(t, "project.git", "rev-parse", "main"); got != main {
		t.Errorf("main is %s", got)
	}
}

// A project that has a submodule already: its repository is not asked for, and
// nothing is run for it.
func TestAttack_SubmodulesAreNotTouched(t *testing.T) {
	tr, h, p := setTrap(t), newHost(t), newSandbox(t)
	modules := "[submodule \"s\"]\n\tpath = s\n\turl = ../private.git\n"
	stream := fmt.Sprintf("commit refs/heads/main\ncommitter Owner <owner@example.com> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\nM 160000 %s s\nM 644 inline .gitmodules\ndata %d\n%s\n\n", strings.Repeat("1", 40), len(modules), modules)
	cmd := exec.CommandContext(t.Context(), "git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin, cmd.Env = h.server.Dir("project.git"), strings.NewReader(stream), []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := h.prepare(p, "work")
	p.work(t, "x", map[string]string{"x": "x"})
	record := h.take(p, w, "run-1")
	h.send(record)
	tr.check(t)
	if record.Step != relay.Done {
		t.Errorf("%+v", record)
	}
	if slices.ContainsFunc(h.server.Requests(), func(r string) bool { return strings.Contains(r, "private.git") }) {
		t.Error("the submodule was asked for")
	}
}

// Every git that the host starts is noted, with all that it sees: it is never in
// a sandbox, no variable or file of the host reaches it, and the credential is in
// neither its arguments nor its environment.
func TestAttack_WhatGitOnTheHostSees(t *testing.T) {
	tr := setTrap(t)
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	notes := t.TempDir() // a file each: some are started at once
	note := "#!/bin/sh\ntest \"$HOME\" = /nonexistent && { echo \"pwd $(pwd)\"; for a; do echo \"arg $a\"; done; env; } > $(mktemp " + notes + "/XXXXXXXX)\nexec " + program + " \"$@\"\n"
	h, p := newHost(t), newSandbox(t)
	writeFile(t, filepath.Join(bin, "git"), note, 0o700)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GIT_DIR", p.root)
	t.Setenv("GIT_EXTERNAL_DIFF", "touch "+tr.trip)
	t.Setenv("GIT_SSH_COMMAND", "touch "+tr.trip)
	t.Setenv("GIT_PROXY_COMMAND", "touch "+tr.trip)
	w := h.prepare(p, "work")
	p.work(t, "x", map[string]string{"x": "x"})
	h.send(h.take(p, w, "run-1"))
	tr.check(t)
	calls, err := filepath.Glob(notes + "/*")
	if err != nil || len(calls) < 10 {
		t.Fatalf("%d calls are noted, %v", len(calls), err)
	}
	for _, call := range calls {
		data, err := os.ReadFile(call)
		if err != nil {
			t.Fatal(err)
		}
		seen := string(data)
		for _, never := range []string{p.root, canary, tr.trip, "GITHUB_TOKEN", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR"} {
			if strings.Contains(seen, never) {
				t.Errorf("git saw %s: %s", never, seen)
			}
		}
		for _, always := range []string{
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "HOME=/nonexistent",
			"arg core.hooksPath=/dev/null", "arg core.fsmonitor=false", "arg protocol.ext.allow=never", "arg credential.helper=", "arg protocol.allow=never",
		} {
			if strings.Count(seen, "\n"+always+"\n") != 1 {
				t.Errorf("not once %s: %s", always, seen)
			}
		}
	}
}
