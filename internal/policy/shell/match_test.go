package shell_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/policy/shell"
)

func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, argv string // argv's words are separated by "|"
		want          bool
	}{
		{"gh *", "gh", true},
		{"gh *", "gh|pr|list", true},
		{"gh *", "gh|", true}, // an empty word is a word
		{"gh *", "./gh|pr", false},
		{"gh *", "/tmp/gh|pr", false},
		{"gh *", "../gh", false},
		{"gh *", "ghx|pr", false},
		{"gh *", "GH|pr", false},
		{"gh *", "gh pr", false},
		{"gh", "gh", true},
		{"gh", "gh|pr", false},
		{"  gh \t * ", "gh|pr", true},
		{"git fetch *", "git|fetch", true},
		{"git fetch *", "git|fetch|origin|main", true},
		{"git fetch *", "git|fetchx", false},
		{"git fetch *", "git", false},
		{"git fetch *", "git|-c|core.sshCommand=id|fetch", false},
		{"git * origin", "git|fetch|origin", true},
		{"git * origin", "git|origin", false},
		{"git * origin", "git|fetch|x|origin", false},
		{"git * *", "git|fetch", true},
		{"git * *", "git", false},
		{"npm", "npm", true},
		{"npm", "npm|install", false},
		{"npm run build-*", "npm|run|build-x", true},
		{"npm run build-*", "npm|run|build-", true},
		{"npm run build-*", "npm|run|build-x|y", false},
		{"npm run *-a*b", "npm|run|x-a-ab", true},
		{"npm run *-a*b", "npm|run|x-b", false},
		{"x a*a", "x|a", false},
		{"x a*a", "x|aa", true},
		{"x a*bc*bc", "x|abcbc", true},
		{"x a*bc*bc", "x|abc", false},
		{"x **", "x|y", true},
		{"x **", "x", false},
		{"*", "gh|pr", true},
		{"*", "./gh", false},
		{"* fetch", "git|fetch", true},
		{"git-*", "git-lfs", true},
		{"git-*", "git-x/../../tmp/id", false},
		{"/usr/bin/gh *", "/usr/bin/gh|x", true},
		{"/usr/bin/gh *", "gh|x", false},
		{"/usr/bin/*", "/usr/bin/gh", true},
		{"/usr/bin/*", "/usr/bin/../gh", false},
		{"x /etc/*", "x|/etc/a/b", true}, // slashes are only special in the command word
		{"g? x[1]", "gh|x1", false},
		{"g? x[1]", "g?|x[1]", true},
		{"", "gh", false},
		{"   ", "gh", false},
		{"* *", "", false},
	}
	for _, c := range cases {
		t.Run(c.pattern+" on "+c.argv, func(t *testing.T) {
			pattern, got := shell.Match([]string{c.pattern}, strings.Split(c.argv, "|"))
			if got != c.want || got && pattern != c.pattern {
				t.Errorf("Match = %q, %v", pattern, got)
			}
		})
	}
}

func TestMatchSaysWhich(t *testing.T) {
	patterns := []string{"npm *", "gh pr *", "gh *"}
	if got, ok := shell.Match(patterns, []string{"gh", "pr"}); got != "gh pr *" || !ok {
		t.Errorf("got %q, %v", got, ok)
	}
	if got, ok := shell.Match(patterns, nil); ok {
		t.Errorf("no words match %q", got)
	}
	if got, ok := shell.Match(nil, []string{"gh"}); ok {
		t.Errorf("no patterns, but %q matches", got)
	}
}

// FuzzMatch checks the one-pass comparison against one that tries everything.
func FuzzMatch(f *testing.F) {
	f.Add("a*b*c", "axbxc")
	f.Add("*", "")
	f.Add("a**a", "aa")
	f.Fuzz(func(t *testing.T, pattern, word string) {
		if pattern == "" || len(pattern) > 12 || len(word) > 12 || strings.ContainsAny(pattern, " \t") {
			return
		}
		_, got := shell.Match([]string{"x " + pattern + " y"}, []string{"x", word, "y"})
		if want := slowMatch(pattern, word); got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, word, got, want)
		}
	})
}

func slowMatch(pattern, word string) bool {
	switch {
	case pattern == "":
		return word == ""
	case pattern[0] == '*':
		return slowMatch(pattern[1:], word) || word != "" && slowMatch(pattern, word[1:])
	}
	return word != "" && pattern[0] == word[0] && slowMatch(pattern[1:], word[1:])
}
