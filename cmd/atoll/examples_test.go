//go:build linux

package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/doctest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	// examplesVariable names the directory with the examples for a user who cannot
	// read the tree, programsVariable the one with their programs.
	examplesVariable = "ATOLL_TEST_EXAMPLES"
	programsVariable = "ATOLL_TEST_EXAMPLE_PROGRAMS"

	examplesDir = "../../examples"
)

// examples returns the directories of the examples.
func examples(t *testing.T) (dirs []string) {
	t.Helper()
	root := cmp.Or(os.Getenv(examplesVariable), examplesDir)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	if len(dirs) < 5 {
		t.Fatalf("%d examples below %s", len(dirs), root)
	}
	return dirs
}

// TestExamples does what the README of every example shows, in a copy of its
// directory, and compares what is printed. An example without a command that is run
// fails.
func TestExamples(t *testing.T) {
	need.Time(t, "it builds and runs all examples")
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			doc := parseDocument(t, filepath.Join(dir, "README.md"))
			if !runsSomething(doc) {
				t.Fatal("nothing in its README.md is run")
			}
			script, err := doc.Script(os.Getuid() == 0)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(script.Text, "jq ") || strings.Contains(script.Text, "ask.sh") {
				need.Program(t, "jq", "jq")
			}
			r := newReader(t, withoutProgram(doc.Needs))
			r.copyExample(dir)
			out, err := r.run(script.Text)
			if err := script.Compare(out, err); err != nil {
				t.Error(err)
			}
		})
	}
}

// Examples work for an ordinary user too.
func TestExamplesAsUser(t *testing.T) {
	needAnother(t)
	copied, programs := readableDir(t), readableDir(t)
	if err := os.CopyFS(copied, os.DirFS(examplesDir)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range examples(t) {
		buildExample(t, dir, programs)
	}
	t.Setenv(examplesVariable, copied)
	t.Setenv(programsVariable, programs)
	asSomeone(t, "TestExamples", nil)
}

// The list of examples names every directory, and what is listed is there.
func TestExamplesAreListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(examplesDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dirs := examples(t)
	for _, dir := range dirs {
		if name := filepath.Base(dir); !strings.Contains(string(text), "["+name+"]("+name+"/)") {
			t.Errorf("examples/README.md does not list %s", name)
		}
	}
	if listed := strings.Count(string(text), "| ["); listed != len(dirs) {
		t.Errorf("%d examples are listed, there are %d", listed, len(dirs))
	}
}

// runsSomething reports whether a document has a block that is run by every user.
func runsSomething(doc *doctest.Document) bool {
	for _, b := range doc.Blocks {
		if (b.Lang == "sh" || b.Lang == "console") && b.Skip == "" && !b.AsRoot {
			return true
		}
	}
	return false
}

// withoutProgram leaves out the need of an example that is a Go program: it is
// built from its directory.
func withoutProgram(needs []string) (rest []string) {
	for _, need := range needs {
		if need != "program" {
			rest = append(rest, need)
		}
	}
	return rest
}

// copyExample copies the files of an example into the project, and its program.
func (r *reader) copyExample(dir string) {
	r.t.Helper()
	if err := os.CopyFS(r.path("project"), os.DirFS(dir)); err != nil {
		r.t.Fatal(err)
	}
	programs := os.Getenv(programsVariable)
	if programs == "" {
		programs = r.t.TempDir()
		buildExample(r.t, dir, programs)
	}
	program := filepath.Join(programs, filepath.Base(dir))
	if _, err := os.Stat(program); err != nil {
		return
	}
	if out, err := exec.CommandContext(r.t.Context(), "cp", program, r.path("project/ask")).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// buildExample builds the program of an example that has one.
func buildExample(t *testing.T, dir, into string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "main.go")); err != nil {
		return
	}
	path, err := filepath.Abs(into)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(path, filepath.Base(dir)), ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// readableDir returns a directory that other users can read.
func readableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "examples") //nolint:usetesting // others cannot enter a test's own directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
