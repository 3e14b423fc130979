package archtest_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/archtest"
)

func TestTree(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	noteFiles(t, root)
	packages, err := archtest.Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 2 {
		t.Fatalf("found %d packages below %s", len(packages), root)
	}
	for _, rule := range archtest.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, finding := range rule.Check(packages) {
				t.Errorf("%s (%s)", finding, rule.Reason)
			}
		})
	}
}

// noteFiles visits every directory, because go test reuses a result unless it
// saw the test look at what changed, and it does not see what go list looks at.
func noteFiles(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryRuleBites gives each rule packages that break it, and beside them
// what comes close without breaking it.
func TestEveryRuleBites(t *testing.T) {
	imports := func(path string, imports ...string) archtest.Package {
		return archtest.Package{Path: path, Name: filepath.Base(path), Doc: "Package x is documented.", Imports: imports}
	}
	links := func(path string, deps ...string) archtest.Package {
		return archtest.Package{Path: path, Deps: deps}
	}
	file := func(path string, f archtest.File) archtest.Package {
		return archtest.Package{Path: path, Doc: "Package x is documented.", Files: []archtest.File{f}}
	}
	cases := []struct {
		rule  string
		bad   archtest.Package
		want  string
		fine  archtest.Package
		extra []archtest.Package // the rest of the graph
	}{
		{
			rule: "only atoll-kube links clusters",
			bad:  imports("internal/sandbox/provide", "internal/runtime/kube"),
			want: "internal/sandbox/provide imports internal/runtime/kube",
			fine: imports("cmd/atoll-kube", "internal/runtime/kube"),
		},
		{
			rule: "no typed clients of clusters",
			bad:  imports("internal/runtime/kube", "k8s.io/client-go/kubernetes/scheme"),
			want: "internal/runtime/kube imports k8s.io/client-go/kubernetes/scheme",
			fine: imports("internal/runtime/kube", "k8s.io/client-go/dynamic"),
		},
		{
			rule: "imports point down",
			bad:  imports("internal/config", "internal/sandbox"),
			want: "internal/config imports internal/sandbox",
			fine: imports("internal/sandbox/deeper", "internal/sandbox", "internal/wire", "os"),
		},
		{
			rule: "imports point down",
			bad:  imports("internal/novelty"),
			want: "internal/novelty has no layer",
			fine: imports("internal/testkit/archtest", "internal/cli"),
		},
		{
			rule: "imports point down",
			bad:  imports("internal/model/proxy", "internal/egress"),
			want: "internal/model/proxy imports internal/egress",
			fine: imports("internal/app", "internal/model/proxy", "internal/egress"),
		},
		{
			rule: "one home for a heavy dependency",
			bad:  imports("internal/app", "github.com/moby/moby/client"),
			want: "internal/app imports github.com/moby/moby/client, whose home is internal/runtime/docker",
			fine: imports("internal/runtime/docker", "github.com/moby/moby/client"),
		},
		{
			rule: "test kits stay in tests",
			bad:  imports("internal/sandbox", "testing"),
			want: "internal/sandbox imports testing",
			fine: imports("internal/testkit/sandboxtest", "testing", "go.uber.org/goleak"),
		},
		{
			rule:  "test kits stay in tests",
			bad:   imports("internal/app", "internal/testkit/enginetest"),
			want:  "internal/app imports internal/testkit/enginetest",
			fine:  imports("internal/testkit/sandboxtest", "internal/testkit/enginetest"),
			extra: []archtest.Package{imports("internal/testkit/enginetest")},
		},
		{
			rule: "only sandbox/provide and app import runtimes",
			bad:  imports("internal/tool", "internal/runtime/docker"),
			want: "internal/tool imports internal/runtime/docker",
			fine: imports("internal/app", "internal/runtime/docker"),
		},
		{
			rule: "no program is imported",
			bad:  imports("internal/app", "cmd/atoll/flags"),
			want: "internal/app imports cmd/atoll/flags",
			fine: imports("cmd/atoll", "cmd/atoll/flags"),
		},
		{
			rule: "the guest links little",
			bad:  links("cmd/atoll-guest", "net/http"),
			want: "cmd/atoll-guest links net/http",
			fine: links("internal/guest", "net", "os", "internal/abi", "internal/wire", "golang.org/x/sys/unix"),
		},
		{
			rule:  "the guest links little",
			bad:   links("internal/guest", "internal/config"),
			want:  "internal/guest links internal/config",
			fine:  links("internal/machine", "internal/config"),
			extra: []archtest.Package{imports("internal/config")},
		},
		{
			rule: "the host does not link the guest",
			bad:  imports("internal/machine", "internal/guest"),
			want: "internal/machine imports internal/guest",
			fine: imports("cmd/atoll-guest", "internal/guest"),
		},
		{
			rule: "policy does no I/O",
			bad:  imports("internal/policy", "os"),
			want: "internal/policy imports os",
			fine: imports("internal/policy", "internal/config", "net/netip", "path"),
		},
		{
			rule: "policy does no I/O",
			bad:  file("internal/policy", archtest.File{Name: "clock.go", Uses: []string{"time.Now"}}),
			want: "internal/policy/clock.go uses time.Now",
			fine: file("internal/policy", archtest.File{Name: "limit.go", Uses: []string{"time.Duration"}}),
		},
		{
			rule: "grants, not containers",
			bad:  imports("internal/model/proxy", "internal/sandbox"),
			want: "internal/model/proxy imports internal/sandbox",
			fine: imports("internal/model/proxy", "internal/model/grant"),
		},
		{
			rule: "sandboxes know no git",
			bad:  imports("internal/runtime/docker", "internal/relay"),
			want: "internal/runtime/docker imports internal/relay",
			fine: imports("internal/relay", "github.com/google/go-github/v80/github"),
		},
		{
			rule:  "api is plain",
			bad:   imports("api", "internal/config"),
			want:  "api imports internal/config",
			fine:  imports("api/v1", "api", "encoding/json"),
			extra: []archtest.Package{imports("internal/config")},
		},
		{
			rule: "names say something",
			bad:  imports("internal/httputil/common"),
			want: `the name "common" says nothing`,
			fine: imports("internal/commons"),
		},
		{
			rule: "every package says what it is for",
			bad:  archtest.Package{Path: "internal/silent", Files: []archtest.File{{Name: "a.go"}}},
			want: "internal/silent has no package comment",
			fine: archtest.Package{Path: "internal/onlytests"},
		},
		{
			rule: "no init functions",
			bad:  file("internal/magic", archtest.File{Name: "a.go", Inits: 1}),
			want: "internal/magic/a.go has an init function",
			fine: file("internal/generated", archtest.File{Name: "a.go", Inits: 1, Generated: true}),
		},
		{
			rule: "app is wiring",
			bad:  imports("internal/app", strings.Fields(strings.Repeat("internal/x ", 21))...),
			want: "internal/app imports 21 packages of this tree, more than 20",
			fine: imports("internal/app", strings.Fields(strings.Repeat("internal/x ", 20)+strings.Repeat("os ", 20))...),
		},
		{
			rule: "app is wiring",
			bad:  file("internal/app", archtest.File{Name: "app.go", Code: 1001}),
			want: "internal/app has 1001 lines, more than 1000",
			fine: file("internal/sandbox/provide", archtest.File{Name: "ready.go", Code: 1001}),
		},
		{
			rule: "packages stay small",
			bad:  file("internal/sandbox/provide", archtest.File{Name: "ready.go", Code: 5001}),
			want: "internal/sandbox/provide has 5001 lines, more than 5000",
			fine: file("internal/sandbox/provide", archtest.File{Name: "schema.go", Code: 5001, Generated: true}),
		},
		{
			rule: "files stay short",
			bad:  file("internal/epic", archtest.File{Name: "a.go", Lines: 601}),
			want: "internal/epic/a.go has 601 lines",
			fine: file("internal/story", archtest.File{Name: "a.go", Lines: 600}),
		},
	}
	rules := map[string]archtest.Rule{}
	for _, rule := range archtest.Rules() {
		rules[rule.Name] = rule
	}
	bitten := map[string]bool{}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			rule, ok := rules[c.rule]
			if !ok {
				t.Fatalf("no rule %q", c.rule)
			}
			bitten[c.rule] = true
			if found := strings.Join(rule.Check(append(c.extra, c.bad)), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
			if found := rule.Check(append(c.extra, c.fine)); len(found) > 0 {
				t.Errorf("%s breaks nothing, but: %v", c.fine.Path, found)
			}
		})
	}
	for name, rule := range rules {
		if !bitten[name] {
			t.Errorf("rule %q has no case that breaks it", name)
		}
		if rule.Reason == "" {
			t.Errorf("rule %q has no reason", name)
		}
	}
}
