//go:build linux

package vmcmd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/cli/vmcmd"
	"github.com/atoll-run/atoll/internal/vm"
)

// An agent works in a sandbox inside on an overlay of the read-only project; what passes
// the gate there is applied here, and can be put back.
func TestWorkIsAppliedHere(t *testing.T) {
	m := newMac(t)
	for name, text := range map[string]string{"old.txt": "old\n", "run.sh": "echo hi\n", "moved.txt": "a text that is long enough to be known again\n", "gone/deep/x": "x\n", "gone/y": "y\n", "node_modules/mac.node": "mac\n"} {
		m.file("project/"+name, text, 0o644)
	}
	m.configure("")
	m.must("", "up")
	m.must("applied  0 files", "apply", "--all-passing")
	m.Chdir(filepath.Join(m.home, "project"))
	m.work(`test -z "$(ls node_modules)"; echo linux >node_modules/linux.node; echo new >new.txt; echo more >>main.go; rm old.txt; mkdir -p a/b; echo deep >a/b/c
chmod +x run.sh; mv moved.txt renamed.txt; rm -r gone; printf 'AKIA%s\n' IOSFODNN7EXAMPLQ >key.txt`)
	if _, err := os.Stat("new.txt"); err == nil {
		t.Fatal("the agent wrote to the project itself")
	}
	m.refused("is no change that waits", "apply", "nonsense")
	m.refused("give paths", "apply")
	m.refused("a reason is for paths", "apply", "--all-passing", "--reason", "all")
	m.must("applied  1 files", "apply", "main.go")
	m.holds("main.go", "package main\nmore\n")
	m.work(`echo again >>main.go`) // what was applied is what the agent began with: no conflict
	id := m.apply("a/b/c", "new.txt", "main.go").ID
	m.holds("new.txt", "new\n")
	m.holds("main.go", "package main\nmore\nagain\n")
	m.must("put back 5 files", "undo", id)
	m.holds("new.txt", "")
	m.holds("main.go", "package main\nmore\n")
	m.refused("there is no batch", "undo", id)
	m.modes()
	m.swapped()
	m.must("left     key.txt", "apply", "--all-passing")
	for name, want := range map[string]string{
		"new.txt": "new\n", "a/b/c": "deep\n", "old.txt": "", "key.txt": "", "main.go": "package main\nmore\nagain\n", "moved.txt": "",
		"renamed.txt": "a text that is long enough to be known again\n", "gone/deep/x": "", "node_modules/linux.node": "", "node_modules/mac.node": "mac\n",
	} {
		m.holds(name, want)
	}
	if _, err := os.Stat("gone"); err == nil {
		t.Error("a directory is left")
	}
	m.refused("changes wait in it: 1 files and 0 commits on /mnt/openclaw", "delete")
	m.work("rm key.txt")
	m.deletionIsUndone()
	m.must("", "delete")
}

// modes applies what becomes executable: for a reason only.
func (m *mac) modes() {
	m.Helper()
	m.must("left     run.sh", "apply", "run.sh")
	m.must("applied  0 files", "apply", "key.txt", "--reason", "a secret is never applied")
	id := m.apply("run.sh", "--reason", "it is a program").ID
	if info, err := os.Stat("run.sh"); err != nil || info.Mode().Perm() != 0o755 {
		m.Errorf("%v %v", info, err)
	}
	reason, err := os.ReadFile(filepath.Join(m.env["ATOLL_STATE_DIR"], "vm-applied", "work", id, "reason"))
	if err != nil || string(reason) != "it is a program\n" {
		m.Errorf("%q %v", reason, err)
	}
	m.must("put back 1 files", "undo", id)
	if info, err := os.Stat("run.sh"); err != nil || info.Mode().Perm() != 0o644 {
		m.Errorf("%v %v", info, err)
	}
	m.must("applied  1 files", "apply", "run.sh", "--reason", "again")
}

// swapped exchanges content between the judgement and the reading of it, and after that.
func (m *mac) swapped() {
	m.Helper()
	const program = "/opt/limatest/timeout" // which reads files of the overlay
	for _, c := range []struct{ script, want string }{
		{`for f; do :; done; echo swapped >"$f"; exec /usr/bin/timeout "$@"`, "new.txt is not what the gate judged"},
		{`for f; do :; done; /usr/bin/timeout "$@"; echo swapped >"$f"`, "files changed meanwhile"},
	} {
		m.must("", "shell", "sh", "-c", `printf '#!/bin/sh\n%s\n' "$1" >"$0"; chmod 755 "$0"`, program, c.script)
		m.refused(c.want, "apply", "new.txt")
		m.holds("new.txt", "")
		m.must("", "shell", "rm", program)
		m.work("echo new >new.txt")
	}
}

// deletionIsUndone puts back a file that the agent deleted: the deletion waits again. If it
// is put back while nobody can be told, the agent gets the file.
func (m *mac) deletionIsUndone() {
	m.Helper()
	m.file("project/gone.txt", "mine\n", 0o644)
	m.work("rm gone.txt")
	id := m.apply("gone.txt").ID
	m.must("put back 1 files", "undo", id)
	m.holds("gone.txt", "mine\n")
	id = m.apply("gone.txt").ID
	m.holds("gone.txt", "")
	m.must("", "down")
	m.must("note     the gate inside was not told", "undo", id)
	m.holds("gone.txt", "mine\n")
	m.must("", "up")
	m.work(`test "$(cat gone.txt)" = mine`)
	m.must("applied  0 files", "apply", "--all-passing")
}

// Sandboxes of directories of the project have overlays of their own, which count too.
func TestOverlaysOfAll(t *testing.T) {
	m := newMac(t)
	m.file("project/lib/lib.go", "package lib\n", 0o644)
	m.configure("")
	for _, dir := range []string{"src", "lib"} {
		m.Chdir(filepath.Join(m.home, "project", dir))
		m.atoll("shell", "--", "sh", "-ec", "echo made >made.txt")
	}
	m.refused("1 files and 0 commits on /mnt/openclaw/src", "delete")
	id := m.apply("src/made.txt").ID
	m.holds("src/made.txt", "made\n")
	m.holds("lib/made.txt", "")
	m.refused("1 files and 0 commits on /mnt/openclaw/lib", "delete")
	m.must("put back 1 files", "undo", id)
	m.must("applied  2 files", "apply", "--all-passing")
	m.holds("lib/made.txt", "made\n")
	m.must("", "delete")
}

// With mode auto what passes is applied when the work ends.
func TestAutoAppliesWhenTheWorkEnds(t *testing.T) {
	m := newMac(t)
	m.configure("mode: 'auto'")
	m.Chdir(filepath.Join(m.home, "project"))
	var out bytes.Buffer
	err := vmcmd.Forward(m.Context(), m.host("", &out), []string{"run", "--access", "overlay", "--", "sh", "-ec", "echo x >x.txt; echo 'echo' >x.sh; chmod +x x.sh; exit 5"})
	if err == nil || err.Error() != "exit 5" || !strings.Contains(out.String(), "left     x.sh\napplied  1 files") {
		t.Errorf("%v %s", err, out.String())
	}
	m.holds("x.txt", "x\n")
	m.holds("x.sh", "")
}

// work runs a script in the sandbox of the default agent.
func (m *mac) work(script string) {
	m.Helper()
	m.atoll("run", "--access", "overlay", "--", "sh", "-ec", script)
}

// apply applies paths, of which none may be left.
func (m *mac) apply(args ...string) (applied vm.Applied) {
	m.Helper()
	if err := json.Unmarshal([]byte(m.must("", append([]string{"apply", "--json"}, args...)...)), &applied); err != nil || len(applied.Left) > 0 || applied.Note != "" {
		m.Fatalf("%+v %v", applied, err)
	}
	return applied
}

// atoll runs a verb inside, as `atoll claude` would on a Mac.
func (m *mac) atoll(args ...string) {
	m.Helper()
	var out bytes.Buffer
	if err := vmcmd.Forward(m.Context(), m.host("", &out), args); err != nil {
		m.Fatalf("%v %s", err, out.String())
	}
}

// holds compares a file of the project; "" is no file.
func (m *mac) holds(name, want string) {
	m.Helper()
	got, _ := os.ReadFile(filepath.Join(m.home, "project", name))
	if string(got) != want {
		m.Errorf("%s: %q, want %q", name, got, want)
	}
}
