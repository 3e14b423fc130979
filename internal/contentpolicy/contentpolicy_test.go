package contentpolicy_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/contentpolicy"
)

func TestPath(t *testing.T) {
	for path, rule := range map[string]string{
		"src/main.go": "", "a b/c-d_e.txt": "", "café": "",
		"a\xffb": "path-encoding", "a\x1bb": "path-characters", "a\nb": "path-characters", "a\u202eb": "path-characters",
		`a\b`: "path-separator", "a:b": "path-separator", "cafe\u0301": "path-normal-form", "a./b": "path-element", "a//b": "path-element",
		"../x": "path-element", strings.Repeat("x", 256): "path-element", ".GIT/config": "path-git", "x/git~1/y": "path-git", "Nul.txt": "path-device",
	} {
		found := contentpolicy.Path(path)
		if rule == "" && len(found) > 0 || rule != "" && (len(found) == 0 || found[0].Rule != rule || found[0].Verdict != contentpolicy.Blocked) {
			t.Errorf("%q: want %q, got %v", path, rule, found)
		}
	}
}

// The first protection that matches decides, whatever the case of the path.
func TestProtected(t *testing.T) {
	protected := contentpolicy.NewProtected([]contentpolicy.Protection{
		{Pattern: "docs/AGENTS.md", Verdict: contentpolicy.Allowed},
		{Pattern: "**/agents.md", Verdict: contentpolicy.Approval, Why: "it instructs"},
		{Pattern: ".ci/*", Verdict: contentpolicy.Blocked, Why: "it runs"},
	})
	for path, want := range map[string]contentpolicy.Verdict{
		"docs/agents.md": "", "AGENTS.md": contentpolicy.Approval, "a/b/Agents.MD": contentpolicy.Approval,
		".CI/run": contentpolicy.Blocked, ".ci/deeper/run": "", "x.md": "",
	} {
		var got contentpolicy.Verdict
		for _, f := range protected.Path(path) {
			got = f.Verdict
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestLinkProblem(t *testing.T) {
	for _, link := range []struct {
		from, target string
		bad          bool
	}{
		{"l", "file", false}, {"d/l", "../file", false}, {"d/l", "./x/y", false},
		{"l", "/etc", true}, {"l", "../x", true}, {"d/l", "../../x", true}, {"d/l", "a/../x", true}, {"l", "", true},
		{"l", strings.Repeat("x", 2000), true}, {"l", "a\nb", true}, {"l", "C:x", true}, {"l", ".git/hooks", true},
	} {
		if why := contentpolicy.LinkProblem(link.from, link.target); (why != "") != link.bad {
			t.Errorf("%s -> %.40q: %q", link.from, link.target, why)
		}
	}
}

func TestSpellings(t *testing.T) {
	tree := contentpolicy.NewSpellings([]string{"Src/main.go", "README"})
	for path, want := range map[string]string{"src/x.go": "Src", "readme": "README", "README": "", "Src/main.go": "", "other": ""} {
		if got := tree.Other(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	tree.Count("README", -1)
	if got := tree.Other("readme"); got != "" {
		t.Errorf("after it went: %q", got)
	}
}
