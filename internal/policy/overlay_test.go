package policy

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

func TestWorkspacePath(t *testing.T) {
	for access, want := range map[config.Access]string{
		config.AccessOverlay: "/workspace", config.AccessRW: "/mnt/openclaw", config.AccessNone: "/mnt/openclaw", config.AccessRO: "/mnt/openclaw",
	} {
		if got := WorkspacePath(access, "/workspace", "/mnt/openclaw"); got != want {
			t.Errorf("%s: %s, want %s", access, got, want)
		}
	}
}

// Trees that lie in each other, in the workspace or in what is reserved are refused
// with their place.
func TestValidateTrees(t *testing.T) {
	box := config.Sandbox{Docker: config.Docker{Workdir: "/workspace"}}
	for name, c := range map[string]struct {
		trees []config.OverlayTree
		want  string // field and a part of the message; "" if it is allowed
	}{
		"apart":                 {[]config.OverlayTree{{Source: "/v", Target: "/vault"}}, ""},
		"beside by name":        {[]config.OverlayTree{{Source: "/project2", Target: "/workspace-obsidian"}}, ""},
		"in the workspace":      {[]config.OverlayTree{{Source: "/project/sub", Target: "/vault"}}, `more[0].source: "/project/sub" and "/project" lie in each other`},
		"around the workspace":  {[]config.OverlayTree{{Source: "/", Target: "/vault"}}, "more[0].source"},
		"target in another":     {[]config.OverlayTree{{Source: "/a", Target: "/x"}, {Source: "/b", Target: "/x/y"}}, "more[1].target"},
		"source in another":     {[]config.OverlayTree{{Source: "/a", Target: "/x"}, {Source: "/a/b", Target: "/y"}}, "more[1].source"},
		"target is the workdir": {[]config.OverlayTree{{Source: "/a", Target: "/workspace"}}, "more[0].target"},
		"target is ours":        {[]config.OverlayTree{{Source: "/a", Target: InternalTarget + "/x"}}, "more[0].target"},
		"a blocked source":      {[]config.OverlayTree{{Source: "/etc/ssl", Target: "/x"}}, "more[0].source"},
	} {
		box.Overlay.More = c.trees
		var texts []string
		for _, f := range ValidateTrees(box, "/project", Host{}) {
			texts = append(texts, strings.ReplaceAll(strings.TrimPrefix(f.Field, "sandbox.overlay.")+": "+f.Message, "Sandbox security: ", ""))
		}
		if all := strings.Join(texts, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
}
