package rewrite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

func TestMessage(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain", "feat: x\n\nBecause.\n", "feat: x\n\nBecause."},
		{"empty", " \n\n", "(no message)"},
		{"escape sequences", "a\x1b[31mb\x00c\u202ed", "a[31mbcd"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
		{"co-author", "x\n\nCo-authored-by: Boss <boss@example.com>\nSigned-off-by: Boss <b@example.com>\nbye", "x\n\nbye"},
		{"co-author in other case and indented", "x\n  CO-AUTHORED-BY : y", "x"},
		{"our own trailers", "x\n\nAgent-Author: me\nAgent-Commit: 0", "x"},
		{"closes", "fixes #12, Closes: org/repo#7, resolve https://github.com/o/r/issues/9", "fixes  no. 12, Closes: org/repo no. 7, resolve https://github.com/o/r no. 9"},
		{"mentions an issue", "see #12", "see #12"},
		{"skip ci", "x [skip ci] [ci skip] [no ci] [Skip Actions] ***NO_CI***", "x (skip ci) (ci skip) (no ci) (Skip Actions) ()"},
		{"mention", "thanks @boss and (@org/team), mail a@example.com", "thanks boss and (org/team), mail a@example.com"},
		{"diff", "x\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+evil", "x\n\n diff --git a/x b/x\n --- a/x\n +++ b/x\n @@ -1 +1 @@\n+evil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := rewrite.Message(test.text); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestLongMessage(t *testing.T) {
	got := rewrite.Message(strings.Repeat("ä", 5000) + "\n\n" + strings.Repeat("line\n", 1<<16))
	if len(got) > 10<<10 || !utf8.ValidString(got) || !strings.HasSuffix(got, "[…]") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-20:])
	}
}

func TestBlock(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"a\n", "```diff\na\n```"},
		{"+```\n+@boss\n+</details>\n", "````diff\n+```\n+@boss\n+</details>\n````"},
		{"+`````x\u202e\x1b[2J", "``````diff\n+`````x[2J\n``````"},
	} {
		if got := rewrite.Block("diff", test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{"x", "fixes #1", "Co-authored-by: x\nCo-authored-by: y", "@a@b", "[skip [skip ci] ci]", "diff \ndiff "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := rewrite.Message(text)
		lower := strings.ToLower(once)
		for _, bad := range []string{"\x1b", "\x00", "\nco-authored-by:", "\nsigned-off-by:", "[skip ci]", "\ndiff --git"} {
			if strings.Contains(lower, bad) {
				t.Errorf("%q still has %q", once, bad)
			}
		}
	})
}

// The same commits become the same ones, under another name, with the same
// files.
func TestCommits(t *testing.T) {
	ctx := t.Context()
	repo, err := git.Init(ctx, filepath.Join(t.TempDir(), "r.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stream := "commit refs/heads/m\nmark :1\nauthor Real Person <boss@example.com> 1600000000 +0200\ncommitter Agent <a@example.com> 1700000000 +0000\ndata 4\nbase\nM 644 inline a\ndata 1\n1\n\n" +
		"commit refs/heads/m\nmark :2\nauthor Real Person <boss@example.com> 1600000001 +0200\ncommitter Agent <a@example.com> 1700000001 +0000\ndata 9\nfixes #12\nfrom :1\nM 644 inline a\ndata 1\n2\n\n" +
		"commit refs/heads/m\ncommitter Agent <a@example.com> 1700000002 +0000\ndata 4\nlast\nfrom :2\nM 644 inline b\ndata 1\n3\n\n"
	if _, err := repo.Output(ctx, strings.NewReader(stream), "fast-import", "--quiet"); err != nil {
		t.Fatal(err)
	}
	base, err := repo.Resolve(ctx, "refs/heads/m~2")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := repo.Range(ctx, []string{base}, "refs/heads/m", 10)
	if err != nil {
		t.Fatal(err)
	}
	commits, err := repo.Commits(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	by := rewrite.Identity{Name: "Atoll", Email: "atoll@example.com"}
	first, err := rewrite.Commits(ctx, repo, commits, by)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := rewrite.Commits(ctx, repo, commits, by); err != nil || second != first {
		t.Errorf("the second time: %s, %v; the first: %s", second, err, first)
	}
	if difference, err := repo.Changes(ctx, "refs/heads/m", first); err != nil || len(difference) != 0 {
		t.Errorf("the files changed: %v, %v", difference, err)
	}
	if ok, err := repo.Descends(ctx, base, first); !ok || err != nil {
		t.Errorf("it does not stand on the base: %v", err)
	}
	log, err := repo.Line(ctx, "log", "--format=%an|%ae|%cn|%at|%B", base+".."+first)
	if err != nil || strings.Contains(log, "#12") || strings.Count(log, "Atoll|atoll@example.com|Atoll|") != 2 || !strings.Contains(log, "Agent-Author: Real Person <boss@example.com>") {
		t.Errorf("%v: %s", err, log)
	}
}
