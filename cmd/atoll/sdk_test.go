//go:build linux

package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// sdkVariable names a copy of sdk/ that an ordinary user can read.
const sdkVariable = "ATOLL_TEST_SDK"

// sdkPrograms are what runs the examples of a language, and where they are.
var sdkPrograms = map[string][]string{"python/examples/*.py": {"/usr/bin/python3", "-W", "error"}}

// The examples of the packages for other languages print what they say that they print.
// The first starts a private gateway, which the others find.
func TestSDKExamples(t *testing.T) {
	sdk, err := filepath.Abs(cmp.Or(os.Getenv(sdkVariable), filepath.Join("..", "..", "sdk")))
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, nil)
	r.env = append(r.env, "PYTHONPATH="+filepath.Join(sdk, "python", "src"), "PYTHONDONTWRITEBYTECODE=1", "ATOLL_STATE_DIR="+r.path("state"))
	r.startPrivate()
	for pattern, program := range sdkPrograms {
		need.Program(t, program[0], filepath.Base(program[0]))
		examples, err := filepath.Glob(filepath.Join(sdk, pattern))
		if err != nil || len(examples) < 10 {
			t.Fatalf("%v, %v", examples, err)
		}
		for _, path := range examples {
			t.Run(filepath.Base(path), func(t *testing.T) { r.runExample(t, program, path) })
		}
	}
}

// They do for an ordinary user too.
func TestSDKExamplesAsUser(t *testing.T) {
	copied := readableDir(t)
	if err := os.CopyFS(copied, os.DirFS(filepath.Join("..", "..", "sdk"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv(sdkVariable, copied)
	asSomeone(t, "TestSDKExamples", nil)
}

// runExample runs an example, and compares what it prints with its last comment.
func (r *reader) runExample(t *testing.T, program []string, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := strings.TrimSpace(map[bool]string{true: "# ", false: "// "}[strings.HasSuffix(path, ".py")]) + " "
	_, said, _ := strings.Cut(string(text), "\n"+mark+"Output:\n"+mark)
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], path)...)
	cmd.Dir, cmd.Env = r.home, r.env
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if out, err := cmd.Output(); err != nil || string(out) != strings.ReplaceAll(said, "\n"+mark, "\n") {
		t.Errorf("%v\n%s%s\nand it says that it prints\n%s", err, out, problems.Bytes(), said)
	}
}

// startPrivate starts a private gateway, which must end by itself when the test has.
func (r *reader) startPrivate() {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "atoll", "gateway", "--background", "--idle", "3s")
	cmd.Dir, cmd.Env = r.home, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	socket := strings.TrimSpace(string(out))
	r.t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if _, err := os.Lstat(socket); err != nil {
				return
			}
			if time.Now().After(end) {
				r.t.Error("the gateway goes on although nobody uses it")
				return
			}
		}
	})
}
