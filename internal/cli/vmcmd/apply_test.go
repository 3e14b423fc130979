//go:build linux

package vmcmd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/cli/vmcmd"
	"github.com/atoll-run/atoll/internal/vm"
)

// An agent works in a sandbox inside on an overlay of the read-only project; what passes
// the gate there is applied here, and can be put back.
func TestWorkIsAppliedHere(t *testing.T) {
	m := newMac(t)
	m.file("project/old.txt", "old\n", 0o644)
	m.configure("")
	m.must("", "up")
	m.must("applied  0 files", "apply", "--all-passing")
	m.Chdir(filepath.Join(m.home, "project"))
	m.atoll("run", "--access", "overlay", "--", "sh", "-ec", `echo new >new.txt; echo more >>main.go; rm old.txt; mkdir -p a/b; echo deep >a/b/c; printf 'AKIA%s\n' IOSFODNN7EXAMPLQ >key.txt`)
	if _, err := os.Stat("new.txt"); err == nil {
		t.Fatal("the agent wrote to the project itself")
	}
	m.refused("is no change that waits", "apply", "nonsense")
	m.refused("give paths", "apply")
	m.must("applied  1 files", "apply", "main.go")
	m.holds("main.go", "package main\nmore\n")
	var applied vm.Applied
	if err := json.Unmarshal([]byte(m.must("", "apply", "a/b/c", "new.txt", "--json")), &applied); err != nil {
		t.Fatal(err)
	}
	m.holds("new.txt", "new\n")
	m.must("put back 4 files", "undo", applied.ID)
	m.holds("new.txt", "")
	m.refused("there is no batch", "undo", applied.ID)
	m.must("left     key.txt", "apply", "--all-passing")
	m.holds("new.txt", "new\n")
	m.holds("a/b/c", "deep\n")
	m.holds("old.txt", "")
	m.holds("key.txt", "")
	m.refused("changes wait in it", "delete")
	m.atoll("run", "--access", "overlay", "--", "rm", "key.txt")
	m.must("applied  0 files", "apply", "--all-passing")
	m.must("", "delete")
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
