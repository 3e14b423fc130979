package app_test

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
)

// rulesOf is egress for these rules.
func rulesOf(rules ...string) *api.SandboxEgress { return &api.SandboxEgress{Allow: rules} }

// internetFor gives a site an internet, with a git repository at git.example, and its
// operator rules for two names. It returns the proxy that leads there.
func internetFor(t *testing.T, s *site) string {
	t.Helper()
	repository := filepath.Join(s.dir, "repository")
	for _, line := range []string{
		"git init -q -b main repository", "cd repository && echo one >file && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one",
		"cd repository && git checkout -q -b two && echo two >file && git -c user.name=a -c user.email=a@b.c commit -q -a -m two && git checkout -q main",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "HOME="+s.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	backend := &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend",
		Env:  []string{"GIT_PROJECT_ROOT=" + repository, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + s.dir, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	hello := internettest.Hello()
	n, err := internettest.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "git.example" {
			backend.ServeHTTP(w, r)
			return
		}
		hello.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	egress := map[string]any{"mode": "enforce", "allow": []any{"shop.example", "git.example", map[string]any{"host": "api.example", "methods": []any{"GET"}}}, "upstream": n.Proxy}
	s.set("agents.list", []any{map[string]any{"id": "api", "sandbox": map[string]any{"egress": egress}}})
	return n.Proxy
}

// curl asks a name from inside a sandbox, and returns what it answered.
func curl(t *testing.T, c *client.Client, id, url string) string {
	t.Helper()
	result, err := c.Exec(t.Context(), id, shell("curl -sSk --max-time 20 "+url))
	if err != nil {
		t.Fatal(err)
	}
	return result.Stdout
}

// A sandbox reaches what its request names. A caller that is bound to an account names
// only what the operator's rules allow; its owner names what it likes.
func TestInvariant_EGRESS_OF_REQUESTS(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	internetFor(t, s)
	b := openBureau(s, execute.Options{})
	owner := restClient(b, access.Caller{Token: "s", Scope: access.Admin})
	bound := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	for rules, within := range map[string]bool{
		"shop.example": true, `{ host: "api.example", methods: ["GET"] }`: true, `{ host: "shop.example", paths: ["/a/**"] }`: true,
		"other.example": false, "*.shop.example": false, "shop.example:22": false, "api.example": false, "preset:npm": false, "shop.example:80": false,
		`{ host: "shop.example", mode: "tcp", ports: [443] }`: false, `{ host: "shop.example", websocket: true }`: false,
	} {
		box, err := bound.CreateSandbox(t.Context(), &api.CreateSandbox{Egress: rulesOf(rules)})
		if within != (err == nil) || !within && !isProblem(err, "egress_not_allowed") {
			t.Errorf("%s: %v", rules, err)
		}
		if err == nil {
			_, _ = bound.RemoveSandbox(t.Context(), box.ID)
		}
	}
	for _, rules := range []string{"*", "10.0.0.1", "preset:nothing", "", "https://a.example/"} {
		if _, err := owner.CreateSandbox(t.Context(), &api.CreateSandbox{Egress: rulesOf(rules)}); !isProblem(err, "invalid_request") {
			t.Errorf("%q: %v", rules, err)
		}
	}
	for name, c := range map[string]struct {
		as      *client.Client
		request api.CreateSandbox
		want    map[string]bool
	}{
		"the operator's rules":  {bound, api.CreateSandbox{}, map[string]bool{"shop.example": true, "other.example": false}},
		"fewer":                 {bound, api.CreateSandbox{Egress: rulesOf("git.example")}, map[string]bool{"shop.example": false}},
		"none":                  {bound, api.CreateSandbox{Egress: rulesOf()}, map[string]bool{"shop.example": false}},
		"what the owner writes": {owner, api.CreateSandbox{Egress: rulesOf("other.example")}, map[string]bool{"other.example": true, "shop.example": false}},
	} {
		box, err := c.as.CreateSandbox(t.Context(), &c.request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for host, reached := range c.want {
			if got := curl(t, c.as, box.ID, "https://"+host+"/x"); reached != strings.Contains(got, "GET "+host+"/x") {
				t.Errorf("%s: %s: %q", name, host, got)
			}
		}
	}
}

// A workspace begins with a repository that is cloned inside, from servers that the
// caller may reach, and a failure leaves nothing.
func TestGatewayWorkspaceOfGit(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	internetFor(t, s)
	b := openBureau(s, execute.Options{})
	bound := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	unverified := map[string]string{"GIT_SSL_NO_VERIFY": "true"}
	box, err := bound.CreateSandbox(t.Context(), &api.CreateSandbox{Workspace: &api.SandboxWorkspace{Git: "https://git.example/.git", Ref: "two"}, Egress: rulesOf(), Env: unverified})
	if err != nil {
		t.Fatal(err)
	}
	result, err := bound.Exec(t.Context(), box.ID, shell("cat file; git log --oneline | wc -l; curl -sSk --max-time 5 https://git.example/ 2>/dev/null"))
	if err != nil || result.Stdout != "two\n1\n" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := bound.RemoveSandbox(t.Context(), box.ID); err != nil {
		t.Error(err)
	}
	for url, code := range map[string]string{
		"https://other.example/x.git": "egress_not_allowed", "https://git.example/nothing.git": "git_failed", "https://user:key@git.example/.git": "invalid_request",
		"http://git.example/.git": "invalid_request", "file:///etc": "invalid_request", "--upload-pack=x": "invalid_request", "https://127.0.0.1/x": "invalid_request",
	} {
		if _, err := bound.CreateSandbox(t.Context(), &api.CreateSandbox{Workspace: &api.SandboxWorkspace{Git: url}, Env: unverified}); !isProblem(err, code) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if list, err := bound.Sandboxes(t.Context(), api.SandboxQuery{}); err != nil || len(list.Sandboxes) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
