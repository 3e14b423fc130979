package branch_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay/branch"
)

func TestWish(t *testing.T) {
	for _, test := range []struct {
		name string
		wish branch.Request
		want branch.Key
		err  string
	}{
		{name: "nothing asked", wish: branch.Request{Run: "run-1"}},
		{name: "branch first", wish: branch.Request{Branch: "fix", WorkItem: "task.0022", StateKey: "s", Mode: "thread"}, want: "fix"},
		{name: "then the work item", wish: branch.Request{WorkItem: "task.0022", StateKey: "s", Mode: "thread"}, want: "task.0022"},
		{name: "a conversation only if asked", wish: branch.Request{StateKey: "s"}},
		{name: "a conversation", wish: branch.Request{StateKey: "s", Mode: "thread"}, want: "s"},
		{name: "thread without a conversation", wish: branch.Request{Mode: "thread"}, err: "needs a state key"},
		{name: "unknown mode", wish: branch.Request{Branch: "fix", Mode: "run"}, err: "unknown branch mode"},
		{name: "the run's id", wish: branch.Request{Branch: "run-1", Run: "run-1"}, err: "is the id of the run"},
		{name: "the run's id in other case", wish: branch.Request{WorkItem: "RUN-1", Run: "run-1"}, err: "is the id of the run"},
		{name: "the error names the source", wish: branch.Request{WorkItem: "a b"}, err: "work item: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.wish.Key()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %q, %v; want an error with %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "-x", "--force", ".hidden", "_x", "a..b", "a.lock", "a.LOCK", "a.lock/b", "a//b", "/a", "a/", "a.", "a./b", "a/-b", "a/.b",
		"a b", "a\nb", "a\x00b", "a:b", "a~1", "a^", "a?", "a*", "a[b", "a\\b", "a@{1}", "@", "ä", "a%2fb", "..", "a/../b", "refs/heads/../x", strings.Repeat("a", 81),
	} {
		if key, err := branch.Parse(text); err == nil {
			t.Errorf("%q was taken as %q", text, key)
		}
	}
}

// What Parse takes, git takes too.
func FuzzParseIsNarrowerThanGit(f *testing.F) {
	for _, seed := range []string{"task.0022", "ABC-123", "feature/login", "a.b_c-d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := branch.Parse(text)
		if err != nil {
			return
		}
		if out, err := exec.Command("git", "check-ref-format", key.Ref()).CombinedOutput(); err != nil {
			t.Fatalf("git refuses %q: %v %s", key.Ref(), err, out)
		}
	})
}

func TestPathsOfDifferentKeysDiffer(t *testing.T) {
	seen := map[string]branch.Key{}
	for _, key := range []branch.Key{"a", "A", "a/b", "a.b", "a-b", "a_b", "a2fb", "A/b", "a/B", "AB", "ab"} {
		path := strings.ToLower(key.Path())
		if other, ok := seen[path]; ok {
			t.Errorf("%q and %q share the path %q", key, other, path)
		}
		if strings.Contains(path, "/") {
			t.Errorf("%q: %q is more than one element", key, path)
		}
		seen[path] = key
	}
}

func TestCollides(t *testing.T) {
	for _, test := range []struct {
		a, b branch.Key
		want bool
	}{{"a", "a/b", true}, {"a/b", "a", true}, {"a", "a", false}, {"a", "ab/c", false}, {"a/b", "a/c", false}} {
		if got := test.a.Collides(test.b); got != test.want {
			t.Errorf("%q and %q: got %v", test.a, test.b, got)
		}
	}
}
