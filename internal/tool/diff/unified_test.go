package diff_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestUnified(t *testing.T) {
	cases := []struct{ name, a, b, want string }{
		{"equal", "a\n", "a\n", ""},
		{"both empty", "", "", ""},
		{"one line", "a\n", "b\n", "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-a\n+b\n"},
		{"from nothing", "", "x\ny\n", "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n"},
		{"to nothing", "x\ny\n", "", "--- a\n+++ b\n@@ -1,2 +0,0 @@\n-x\n-y\n"},
		{
			"no newline at the end", "x\ny", "x\nz",
			"--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n",
		},
		{
			"newline added", "x\ny", "x\ny\n",
			"--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n",
		},
		{
			"unchanged last line without newline", "x\ny", "z\ny",
			"--- a\n+++ b\n@@ -1,2 +1,2 @@\n-x\n+z\n y\n\\ No newline at end of file\n",
		},
		{"carriage returns stay", "x\r\n", "x\n", "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-x\r\n+x\n"},
		{"binary", "x\x00\n", "y\n", "Binary files a and b differ\n"},
		{
			"insertion with context", numbers(1, 10), numbers(1, 5) + "new\n" + numbers(6, 10),
			"--- a\n+++ b\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+new\n 6\n 7\n 8\n",
		},
		{
			"five lines apart: one hunk", numbers(1, 20), strings.NewReplacer("5\n", "", "11\n", "").Replace(numbers(1, 14)) + numbers(15, 20),
			"--- a\n+++ b\n@@ -2,13 +2,11 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n 9\n 10\n-11\n 12\n 13\n 14\n",
		},
		{
			"seven lines apart: two hunks", numbers(1, 14), strings.NewReplacer("3\n", "", "11\n", "").Replace(numbers(1, 12)) + numbers(13, 14),
			"--- a\n+++ b\n@@ -1,6 +1,5 @@\n 1\n 2\n-3\n 4\n 5\n 6\n@@ -8,7 +7,6 @@\n 8\n 9\n 10\n-11\n 12\n 13\n 14\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := diff.Unified("a", "b", []byte(c.a), []byte(c.b), 0)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNamesStayOnTheirLine(t *testing.T) {
	cases := map[string]string{
		"plain.go":            "--- plain.go\n",
		"with blank":          "--- with blank\t\n",
		"x\n+++ /etc/passwd":  `--- "x\n+++ /etc/passwd"` + "\n",
		"q\"q":                `--- "q\"q"` + "\n",
		"\u202eright to left": `--- "\u202eright to left"` + "\n",
		"größe":               "--- größe\n",
		"\x1b[2J":             `--- "\x1b[2J"` + "\n",
		"invalid\xff":         `--- "invalid\xff"` + "\n",
		diff.DevNull:          "--- /dev/null\n",
	}
	for name, want := range cases {
		got := diff.Unified(name, "b", nil, []byte("x\n"), 0)
		if first, _, _ := strings.Cut(got, "\n"); first+"\n" != want {
			t.Errorf("%q: %q, want %q", name, first, want)
		}
	}
}

func TestLimitCutsAtALine(t *testing.T) {
	a, b := []byte(numbers(1, 30)), []byte(numbers(101, 130))
	whole := diff.Unified("a", "b", a, b, 0)
	if got := diff.Unified("a", "b", a, b, len(whole)); got != whole {
		t.Errorf("cut although it fits: %q", got)
	}
	for limit := 1; limit < len(whole); limit++ {
		got := diff.Unified("a", "b", a, b, limit)
		kept, note, found := strings.Cut(got, "\\ Diff cut here: ")
		if !found || len(kept) > limit || !strings.HasPrefix(whole, kept) || kept != "" && !strings.HasSuffix(kept, "\n") {
			t.Fatalf("limit %d: %q", limit, got)
		}
		shown := strings.Count(kept, "\n-") + strings.Count(kept, "\n+") - strings.Count(kept, "\n+++")
		if want := fmt.Sprintf("%d more changed lines\n", 60-shown); note != want {
			t.Fatalf("limit %d shows %d lines and says %q", limit, shown, note)
		}
	}
}

// TestPatchAgrees gives diffs to the program that they are meant for.
func TestPatchAgrees(t *testing.T) {
	program := need.Program(t, "patch", "patch")
	texts := []string{"", "a\n", "a\nb", numbers(1, 30), numbers(5, 25) + "x", "b\n" + numbers(1, 10) + "c\n" + numbers(20, 30), "\r\n\n\na\n"}
	for i, a := range texts {
		for j, b := range texts {
			if i == j {
				continue
			}
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, []byte(a), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "--binary", "--force", file)
			cmd.Stdin = strings.NewReader(diff.Unified("a", "b", []byte(a), []byte(b), 0))
			out, err := cmd.CombinedOutput()
			got, _ := os.ReadFile(file) // an empty result is a file removed
			if err != nil || string(got) != b {
				t.Errorf("%d to %d: %v\n%s", i, j, err, out)
			}
		}
	}
}
