package synccmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

const wantReview = `/workspace: 1 deleted · 3 pass · 1 need approval · 1 blocked · 1 in conflict · withheld: .git 31, node_modules 4,210
pass      D old/legacy.go     −210
conflict  M README.md                           the host's file changed at 14:31
blocked   A notes.txt         +4                line 4: aws-access-token
approval  m scripts/run.sh    mode 0644 → 0755  becomes executable
pass      M src/cart.go       +14 −3
pass      A src/cart_test.go  +88
`

// Deletions come first, then what needs most attention, and everything that is not
// listed is counted.
func TestReviewAsText(t *testing.T) {
	c := newCaller(t)
	out, errs, code := c.call("review")
	if out != wantReview || code != 0 {
		t.Errorf("%d:\n%s\nwant\n%s", code, out, wantReview)
	}
	if !strings.Contains(errs, "`atoll sync approve --all-passing` · `atoll sync override scripts/run.sh --reason TEXT` · `atoll sync diff README.md`") {
		t.Errorf("hints: %s", errs)
	}
}

func TestHostileNamesAreEscaped(t *testing.T) {
	c := newCaller(t)
	c.sync.tree.Entries = []api.SyncEntry{{
		Path: hostile, From: hostile, Kind: "renamed", SHA256: "aa", Verdict: api.SyncApprove, Reasons: []api.SyncReason{{Detail: hostile}},
	}, {Path: "link", Kind: "link", Link: hostile, Verdict: api.SyncPass}, {Path: "-rf", Kind: "deleted", Verdict: api.SyncApprove}}
	c.sync.tree.Base, c.sync.tree.Target = hostile, hostile
	c.sync.tree.Withheld = []api.SyncGroup{{Name: hostile, Files: 1}}
	for _, args := range [][]string{{"review"}, {"status"}, {"approve", "--all-passing"}, {"approve", "**"}, {"override", "-rf"}} {
		out, errs, _ := c.call(args...)
		for _, text := range []string{out, errs} {
			if strings.ContainsAny(text, "\x1b\u202e") || !utf8.ValidString(text) || strings.Contains(text, "a\nb") {
				t.Errorf("%v: %q", args, text)
			}
		}
	}
	if _, errs, _ := c.call("review"); !strings.Contains(errs, "override -- -rf --reason") {
		t.Error(errs)
	}
}

func TestApprove(t *testing.T) {
	c := newCaller(t)
	out, _, code := c.call("approve", "src/**", "old/legacy.go")
	c.did("approve old/legacy.go ", "approve src/cart.go aa", "approve src/cart_test.go bb")
	if code != 0 || out != "applied 3 files to /home/me/shop   (undo: atoll sync undo s-7f3k)\n" {
		t.Errorf("%d: %s", code, out)
	}
	out, errs, code := c.call("approve", "**")
	c.did("approve old/legacy.go ", "approve src/cart.go aa", "approve src/cart_test.go bb")
	if code != console.ExitDenied || !strings.Contains(out, "conflict  M README.md") || !strings.Contains(errs, "3 files left") || !strings.Contains(errs, "atoll sync diff README.md") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	if out, _, code = c.call("approve", "--all-passing", "--json"); code != 0 || !strings.Contains(out, `"id": "s-7f3k"`) || !strings.Contains(out, `"left": []`) {
		t.Errorf("%d: %s", code, out)
	}
}

func TestBadUsage(t *testing.T) {
	c := newCaller(t)
	for _, args := range [][]string{
		{"approve"}, {"approve", "x", "--all-passing"}, {"approve", "nothere"}, {"reject"}, {"reject", "SRC/**"}, {"override", "notes.txt"}, {"override", "src", "--reason", "x"}, {"undo"},
		{"take", "a", "b"}, {"take", "--approve"}, {"take", "--reason", "x"}, {"status", "x"}, {"status", "--tree", "/nowhere"}, {"status", "--agent", ""}, {"diff", "nothere"},
	} {
		if _, errs, code := c.call(args...); code != console.ExitUsage || errs == "" {
			t.Errorf("%v: %d, %s", args, code, errs)
		}
	}
	c.did()
	if _, _, code := c.call("status", "--tree", "/workspace/"); code != 0 {
		t.Error(code)
	}
	if _, _, code := c.call("review", "--tree", "7"); code != exitNoOverlay {
		t.Error(code)
	}
	c.sync.tree = nil
	if _, _, code := c.call("status"); code != exitNoOverlay {
		t.Error(code)
	}
}

// What was shown is what is approved, also in another process.
func TestChangedSinceItWasShown(t *testing.T) {
	c := newCaller(t)
	c.call("review")
	c.sync.tree.Entries[0].SHA256 = "other"
	_, errs, code := c.call("approve", "src/**")
	c.did()
	if code != console.ExitDenied || !strings.Contains(errs, "src/cart.go: changed since it was shown") || !strings.Contains(errs, "atoll sync review") {
		t.Errorf("%d: %s", code, errs)
	}
	c.sync.tree.Entries = append(c.sync.tree.Entries, api.SyncEntry{Path: "src/new.go", Kind: "added", Verdict: api.SyncPass})
	c.call("diff", "src/cart.go")
	if _, errs, code := c.call("approve", "--all-passing"); code != console.ExitDenied || !strings.Contains(errs, "src/new.go") {
		t.Errorf("%d: %s", code, errs)
	}
	if _, errs, code := c.call("approve", "src/cart.go"); code != 0 {
		t.Errorf("%d: %s", code, errs)
	}
	c.did("approve src/cart.go other")
}

func TestOverride(t *testing.T) {
	c := newCaller(t)
	if _, errs, code := c.call("override", "scripts/run.sh", "--reason", "to be run"); code != 0 {
		t.Errorf("%d: %s", code, errs)
	}
	c.did("override scripts/run.sh: to be run")
	for args, want := range map[string]string{
		"notes.txt": "`atoll sync diff notes.txt` shows both", "notes.txt --hash 000000000000": "another hash", "notes.txt --hash dd": "another hash", "README.md": "in conflict",
	} {
		if _, errs, code := c.call(append([]string{"override", "--reason", "x"}, strings.Fields(args)...)...); code != console.ExitDenied || !strings.Contains(errs, want) {
			t.Errorf("%s: %d: %s", args, code, errs)
		}
	}
	c.did()
	if out, _, _ := c.call("diff", "notes.txt"); !strings.Contains(out, "hash dddddddddddd") {
		t.Error(out)
	}
	c.call("override", "notes.txt", "--reason", "x", "--hash", "dddddddddddd")
	c.did("override notes.txt: x")
}

// Paths are also those of the working directory, as a shell completes them.
func TestPathsOfTheWorkingDirectory(t *testing.T) {
	for arg, want := range map[string]string{
		"cart.go": "src/cart.go", "./cart.go": "src/cart.go", "../old/x": "old/x", "/base/README.md": "README.md", "..": "**", ".": "src",
		"../../etc/passwd": "/etc/passwd", "/elsewhere": "/elsewhere", "": "", "sub/**": "src/sub/**",
	} {
		if got := fromBase("/base", "/base/src", arg); got != want {
			t.Errorf("%q: %q, want %q", arg, got, want)
		}
	}
	c := newCaller(t)
	c.sync.tree.Base = t.TempDir()
	if err := os.Mkdir(filepath.Join(c.sync.tree.Base, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(c.sync.tree.Base, "src"))
	if _, errs, code := c.call("approve", "cart.go", "../old"); code != 0 {
		t.Errorf("%d: %s", code, errs)
	}
	c.did("approve old/legacy.go ", "approve src/cart.go aa")
}

func TestChoose(t *testing.T) {
	var entries []api.SyncEntry
	for _, path := range []string{"a*", "ab", "a/b", "a/c/d", "A/b", hostile} {
		entries = append(entries, api.SyncEntry{Path: path})
	}
	for pattern, want := range map[string]int{"a*": 1, "?b": 1, "a": 2, "a/": 2, "a/*": 1, "**/d": 1, "**": 6, console.Printable(hostile): 1, "[": 0, "": 0, "/": 0} {
		found, err := choose(entries, []string{pattern})
		if len(found) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d of %d, %v", pattern, len(found), want, err)
		}
	}
	if found, err := choose(entries, []string{"a/b", "a"}); len(found) != 2 || err != nil {
		t.Error(found, err)
	}
}
