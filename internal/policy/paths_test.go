package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// pathMap makes the map of a sandbox with read-write access to /tmp/workspace.
func pathMap(t testing.TB, opt policy.PathOptions, binds ...string) *policy.PathMap {
	t.Helper()
	mounts, err := policy.PlanMounts(policy.MountRequest{
		Access: config.AccessRW, Workdir: "/workspace", Copy: "/state/copy", Agent: "/tmp/workspace", Binds: binds,
	})
	if err != nil {
		t.Fatal(err)
	}
	opt.Workdir = "/workspace"
	return policy.NewPathMap(mounts, opt)
}

func TestResolvePath(t *testing.T) {
	const two = "/tmp/workspace-two:/workspace-two:ro"
	index := policy.Path{Host: "/tmp/workspace/src/index.ts", Container: "/workspace/src/index.ts", Relative: "src/index.ts", Writable: true}
	for _, tc := range []struct {
		name, input, cwd string
		binds            []string
		want             policy.Path
	}{
		{"V38", "/workspace-two/docs/AGENTS.md", "", []string{two},
			policy.Path{Host: "/tmp/workspace-two/docs/AGENTS.md", Container: "/workspace-two/docs/AGENTS.md", Relative: "/workspace-two/docs/AGENTS.md"}},
		{"V39", "src/index.ts", "", []string{two}, index},
		{"V40", "/workspace/docs/AGENTS.md", "", []string{"/tmp/override:/workspace:ro"},
			policy.Path{Host: "/tmp/override/docs/AGENTS.md", Container: "/workspace/docs/AGENTS.md", Relative: "docs/AGENTS.md"}},
		{"container path", "/workspace/src/index.ts", "", nil, index},
		{"host path", "/tmp/workspace/src/index.ts", "", nil, index},
		{"cwd", "index.ts", "/workspace/src", nil, index},
		{"dots", "../workspace/./src//x/../index.ts", "", nil, index},
		{"mention", "@src/index.ts", "", nil, index},
		{"backslashes", `src\index.ts`, "", nil, index},
		{"home is the workdir", "~/src/index.ts", "", nil, index},
		{"narrow space", "a\u202Fb", "", nil,
			policy.Path{Host: "/tmp/workspace/a b", Container: "/workspace/a b", Relative: "a b", Writable: true}},
		{"empty", "", "", nil, policy.Path{Host: "/tmp/workspace", Container: "/workspace", Relative: ".", Writable: true}},
		{"no tilde of another user", "~root/x", "", nil,
			policy.Path{Host: "/tmp/workspace/~root/x", Container: "/workspace/~root/x", Relative: "~root/x", Writable: true}},
		{"bytes that are no text", "a\xff", "", nil,
			policy.Path{Host: "/tmp/workspace/a\xff", Container: "/workspace/a\xff", Relative: "a\xff", Writable: true}},
		{"bind inside the workspace", "deps/x", "", []string{"/opt/deps:/workspace/deps:ro"},
			policy.Path{Host: "/opt/deps/x", Container: "/workspace/deps/x", Relative: "deps/x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Input = tc.input
			got, err := pathMap(t, policy.PathOptions{Masks: []string{"/tmp", "/run"}}, tc.binds...).Resolve(tc.input, tc.cwd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolvePathRefuses(t *testing.T) {
	const escapes = "Path escapes sandbox root (/workspace): %s. Use a path under /workspace/ instead."
	opt := policy.PathOptions{Home: "/home/u", Masks: []string{"/tmp", "/workspace/cache"}}
	for _, tc := range []struct{ name, input, want string }{
		{"V39", "/etc/passwd", escapes},
		{"parent", "../etc/passwd", escapes},
		{"many parents", "src/../../../../etc/passwd", escapes},
		{"similar name", "/workspace-evil/x", escapes},
		{"similar host name", "/tmp/../tmp/workspace-evil", "Sandbox path is container-only: /tmp/workspace-evil. Use exec"},
		{"tmpfs", "/tmp/x", "Sandbox path is container-only: /tmp/x. Use exec"},
		{"tmpfs in the workspace", "cache/x", "Sandbox path is container-only: /workspace/cache/x. Use exec"},
		{"host path under that tmpfs", "/tmp/workspace/cache/x", "Sandbox path is container-only: /workspace/cache/x. Use exec"},
		{"hidden by a bind", "/tmp/workspace/deps/x", "hidden by another mount"},
		{"guest files", "/.atoll/guest", escapes},
		{"NUL", "a\x00b", "NUL byte"},
		{"root", "/", escapes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := pathMap(t, opt, "/opt/deps:/workspace/deps:ro").Resolve(tc.input, "")
			want := strings.ReplaceAll(tc.want, "%s", tc.input)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, want)
			}
		})
	}
}

func TestTildeMayMeanTheHostsHome(t *testing.T) {
	m := pathMap(t, policy.PathOptions{Home: "/home/u"}, "/home/u/project:/project")
	for input, want := range map[string]string{"~/project/a": "/project/a", "~/notes": "/workspace/notes", "~": "/workspace"} {
		if got, err := m.Resolve(input, ""); err != nil || got.Container != want {
			t.Errorf("%s: got %q, %v, want %q", input, got.Container, err, want)
		}
	}
}

func TestResolveMedia(t *testing.T) {
	m := pathMap(t, policy.PathOptions{Masks: []string{"/tmp"}}, "/opt/two:/two:ro")
	for _, tc := range []struct{ name, input, want string }{
		{"V41 container path", "/workspace/media/pic.png", "/tmp/workspace/media/pic.png"},
		{"V41 file address", "file:///workspace/media/pic.png", "/tmp/workspace/media/pic.png"},
		{"V41 relative", "./data/file.txt", "/tmp/workspace/data/file.txt"},
		{"host path", "/tmp/workspace/a.png", "/tmp/workspace/a.png"},
		{"encoded file address", "file://localhost/workspace/a%20b.png", "/tmp/workspace/a b.png"},
		{"web", "https://example.com/a.png", "https://example.com/a.png"},
		{"colon in a name", "./a:b.png", "/tmp/workspace/a:b.png"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := m.ResolveMedia(tc.input); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	for _, tc := range []struct{ name, input string }{
		{"V42 system file", "/etc/passwd"},
		{"V42 similar name", "/workspace-two/x"},
		{"V42 parent", "../out.png"},
		{"V42 file address", "file:///etc/passwd"},
		{"data address", "data:image/png;base64,AAAA"},
		{"other machine", "file://evil.example/workspace/a.png"},
		{"encoded slash", "file:///workspace%2f..%2f..%2fetc/passwd"},
		{"encoded parent", "file:///workspace/%2e%2e/etc/passwd"},
		{"encoded NUL", "file:///workspace/a%00"},
		{"relative file address", "file:a.png"},
		{"another mount", "/two/x"},
		{"ftp", "ftp://example.com/x"},
		{"javascript", "javascript:alert(1)"},
		{"broken address", "file://%zz"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := m.ResolveMedia(tc.input); err == nil {
				t.Errorf("accepted as %q", got)
			} else if !strings.Contains(strings.ToLower(err.Error()), "sandbox") {
				t.Errorf("%v does not say that it is the sandbox's refusal", err)
			}
		})
	}
}

// Whatever an agent writes, a resolved path stays below a mount on both sides,
// and its two names lead to each other.
func FuzzResolvePath(f *testing.F) {
	for _, seed := range []string{"src/a", "../../etc", "/workspace/../x", "~/..", `..\..`, "@~", "/two/..", "//workspace//a", "\xff\x00", "/tmp/workspace/two/x"} {
		f.Add(seed, "")
		f.Add(seed, "/workspace/sub")
	}
	m := pathMap(f, policy.PathOptions{Home: "/home/u", Masks: []string{"/tmp", "/run"}}, "/opt/two:/two:ro", "/opt/in:/workspace/in")
	roots := map[string]string{"/workspace": "/tmp/workspace", "/two": "/opt/two", "/workspace/in": "/opt/in"}
	f.Fuzz(func(t *testing.T, input, cwd string) {
		got, err := m.Resolve(input, cwd)
		if err != nil {
			return
		}
		inside := false
		for target, source := range roots {
			below, ok := strings.CutPrefix(got.Container+"/", target+"/")
			inside = inside || ok && got.Host+"/" == source+"/"+below
		}
		if !inside || policy.NormalizePath(got.Host) != got.Host || policy.NormalizePath(got.Container) != got.Container {
			t.Fatalf("%q in %q is %+v", input, cwd, got)
		}
		for _, name := range []string{got.Container, got.Host} {
			if strings.ContainsAny(name, "\u00a0\u202f\u205f\u3000\\") {
				continue // only names that Resolve itself can produce
			}
			again, err := m.Resolve(name, "")
			if err != nil || again.Host != got.Host || again.Container != got.Container {
				t.Fatalf("%q is %+v, but %q is %+v, %v", input, got, name, again, err)
			}
		}
	})
}
