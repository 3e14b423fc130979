package workspace_test

import (
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func TestLayoutByAccess(t *testing.T) {
	for access, want := range map[config.Access]struct {
		workspace string
		hasCopy   bool
	}{
		config.AccessNone: {"/state/sandboxes/" + slug, true},
		config.AccessRO:   {"/state/sandboxes/" + slug, true},
		config.AccessRW:   {"/state/workspace", false},
	} {
		t.Run(string(access), func(t *testing.T) {
			l, err := workspace.NewLayout(workspace.Params{
				Access: access, AgentDir: "/state//workspace/", Root: "/state/sandboxes/.", Slug: slug})
			must(t, err)
			same(t, "/workspace", l.WorkspaceDir, want.workspace)
			same(t, "copy", l.SandboxDir, "/state/sandboxes/"+slug)
			same(t, "agent workspace", l.AgentDir, "/state/workspace")
			same(t, "has a copy", l.HasCopy(), want.hasCopy)
		})
	}
}

func TestLayoutOfSharedScopeIsNotTheRootOfAllCopies(t *testing.T) {
	l, err := workspace.NewLayout(workspace.Params{
		Access: config.AccessNone, AgentDir: "/state/workspace", Root: "/state/sandboxes", Slug: workspace.SharedSlug})
	must(t, err)
	same(t, "copy", l.SandboxDir, "/state/sandboxes/shared")
}

func TestLayoutRefuses(t *testing.T) {
	good := workspace.Params{Access: config.AccessNone, AgentDir: "/state/workspace", Root: "/state/sandboxes", Slug: slug}
	for name, tc := range map[string]struct {
		change func(*workspace.Params)
		want   string
	}{
		"access":                   {func(p *workspace.Params) { p.Access = "RW" }, `sandbox.workspaceAccess: unknown value "RW"`},
		"no slug":                  {func(p *workspace.Params) { p.Slug = "" }, `slug ""`},
		"slug that leads up":       {func(p *workspace.Params) { p.Slug = ".." }, `slug ".."`},
		"slug with a separator":    {func(p *workspace.Params) { p.Slug = "a/b" }, `slug "a/b"`},
		"slug with control":        {func(p *workspace.Params) { p.Slug = "a\nb" }, `slug "a\nb"`},
		"slug in Unicode":          {func(p *workspace.Params) { p.Slug = "日本" }, `slug "日本"`},
		"our own directory":        {func(p *workspace.Params) { p.Slug = ".atoll" }, `slug ".atoll"`},
		"slug of 300 bytes":        {func(p *workspace.Params) { p.Slug = strings.Repeat("a", 300) }, "not a name"},
		"relative root":            {func(p *workspace.Params) { p.Root = "sandboxes" }, `sandbox.workspaceRoot: "sandboxes" is not an absolute path`},
		"no workspace":             {func(p *workspace.Params) { p.AgentDir = "" }, `workspace: "" is not an absolute path`},
		"NUL":                      {func(p *workspace.Params) { p.AgentDir = "/a\x00b" }, "is not an absolute path"},
		"workspace is /":           {func(p *workspace.Params) { p.AgentDir = "/.." }, "the root of the file system"},
		"workspace in the root":    {func(p *workspace.Params) { p.AgentDir = "/state/sandboxes/x" }, "lies in /state/sandboxes"},
		"workspace is the root":    {func(p *workspace.Params) { p.AgentDir = p.Root }, "lies in /state/sandboxes"},
		"rw sees all copies":       {func(p *workspace.Params) { p.AgentDir, p.Access = "/state", config.AccessRW }, "would see the copies of all"},
		"ro sees all copies":       {func(p *workspace.Params) { p.AgentDir, p.Access = "/state", config.AccessRO }, "would see the copies of all"},
		"one name begins as other": {func(p *workspace.Params) { p.AgentDir = "/state/sandboxes-of-mine" }, ""},
		"none does not see them":   {func(p *workspace.Params) { p.AgentDir = "/state" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			tc.change(&p)
			_, err := workspace.NewLayout(p)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLayoutReportsEverythingAtOnce(t *testing.T) {
	_, err := workspace.NewLayout(workspace.Params{})
	for _, want := range []string{"workspaceAccess", "slug", "workspaceRoot", "workspace:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %s", err, want)
		}
	}
}

func TestUserIsTheOwnerOfTheWorkspace(t *testing.T) {
	needRoot(t)
	h := newHouse(t)
	user := func() hostpath.Owner {
		t.Helper()
		got, err := h.layout(config.AccessNone).User()
		must(t, err)
		return got
	}
	must(t, os.Chown(h.agent, 1234, 1235))
	same(t, "before there is a copy", user(), hostpath.Owner{UID: 1234, GID: 1235})
	must(t, os.MkdirAll(h.copy, 0o755))
	must(t, os.Chown(h.copy, 77, 78))
	same(t, "with a copy", user(), hostpath.Owner{UID: 77, GID: 78})
	must(t, os.Remove(h.copy))
	must(t, os.Remove(h.agent))
	same(t, "with neither", user(), hostpath.Owner{UID: 0, GID: 0})
}
