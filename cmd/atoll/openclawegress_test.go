//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// gatewayAddress is where the gateway of the test reaches GitHub.
const gatewayAddress = "127.88.77.2"

// fakeGitHub is GitHub's API and its repositories, for who has the token.
type fakeGitHub struct {
	token string
	git   http.Handler
	mu    sync.Mutex
	seen  []string // method and path of every request with the token
}

// ServeHTTP implements http.Handler.
func (g *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	if strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") != g.token && password != g.token {
		w.Header().Set("Www-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, `{"message": "Bad credentials"}`, http.StatusUnauthorized)
		return
	}
	g.mu.Lock()
	g.seen = append(g.seen, r.Method+" "+r.Host+r.URL.Path)
	g.mu.Unlock()
	if r.Host == "github.com" {
		g.git.ServeHTTP(w, r)
		return
	}
	fmt.Fprintf(w, `{"login": "octocat", "token": %q}`, g.token)
}

// TestGatewayReachesGitHub has programs as in the gateway's container of the compose
// files use GitHub, with the configuration that lies beside these files. They have a
// placeholder of the token, and a push is refused.
func TestGatewayReachesGitHub(t *testing.T) {
	need.Root(t, "it listens on port 443")
	s := &programServers{dir: t.TempDir()}
	s.makeRepository(t)
	hub := &fakeGitHub{token: "ghp_" + rand.Text() + rand.Text()[:10], git: s.gitBackend(t)}
	n, err := internettest.Start(hub)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	g := newComposeGateway(t, n, hub.token)
	g.serve(t)
	if text, err := os.ReadFile(g.path("openclaw/egress.env")); err != nil || !strings.Contains(string(text), "\nGITHUB_TOKEN=ghp_") || strings.Contains(string(text), hub.token) {
		t.Fatalf("%v: %s", err, text)
	}
	const bearer = `-H "Authorization: Bearer $GITHUB_TOKEN" `
	const clone = `git -c http.curloptResolve=github.com:443:` + gatewayAddress + ` -c credential.helper='!f() { echo username=x-access-token; echo "password=$GITHUB_TOKEN"; }; f' `
	for _, c := range []struct{ script, want string }{
		{`curl -sS ` + bearer + `https://api.github.com/user`, `"login": "octocat"`},
		{`curl -sS -X PUT ` + bearer + `https://api.github.com/repos/org/project/contents/x -d x`, `method PUT is not in the rule`},
		{`curl -sS -H "Authorization: Bearer of-another-account" https://api.github.com/user`, `no other credential`},
		{clone + `clone -q https://github.com/hello.git cloned && git -C cloned log --oneline`, ` one`},
		{clone + `-C cloned push https://github.com/hello.git main:pushed 2>&1 && echo PUSHED`, `403`},
		{`curl -sS https://gist.github.com/ 2>&1`, `curl: (`},
	} {
		out := g.run(t, c.script)
		if !strings.Contains(out, c.want) || strings.Contains(out, "PUSHED") || strings.Contains(out, hub.token) || strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(hub.token))) {
			t.Errorf("%s: %s", c.script, out)
		}
	}
	hub.mu.Lock()
	defer hub.mu.Unlock()
	if !slices.Contains(hub.seen, "GET api.github.com/user") || slices.ContainsFunc(hub.seen, func(r string) bool { return strings.Contains(r, "receive-pack") || strings.HasPrefix(r, "PUT") }) {
		t.Errorf("GitHub has seen %q", hub.seen)
	}
}

// composeGateway is an installation with the configuration of the compose files.
type composeGateway struct {
	dir string
	env []string
}

func newComposeGateway(t *testing.T, n *internettest.Internet, token string) *composeGateway {
	t.Helper()
	g := &composeGateway{dir: t.TempDir()}
	text, err := os.ReadFile("../../deploy/compose/atoll.json5")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), `mode: "enforce",`, fmt.Sprintf(`mode: "enforce", upstream: %q,`, n.Proxy), 1)
	config = strings.Replace(config, "  secrets: {", fmt.Sprintf("  outbound: {caFile: %q},\n  secrets: {", g.path("ca.pem")), 1)
	for name, text := range map[string]string{"atoll.json5": config, "ca.pem": string(n.CA)} {
		if err := os.WriteFile(g.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.env = append(plainEnvironment(), "PATH="+os.Getenv("PATH"), "HOME="+g.dir, "ATOLL_STATE_DIR="+g.path("state"), "ATOLL_CONFIG="+g.path("atoll.json5"),
		"DOCKER_HOST="+nowhere, "GITHUB_TOKEN="+token, "LITELLM_MASTER_KEY=sk-1234567890")
	out, err := g.command(t, "atoll", "openclaw", "config", "--dir", g.path("openclaw")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return g
}

func (g *composeGateway) path(name string) string { return filepath.Join(g.dir, name) }

func (g *composeGateway) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, g.env, time.Minute
	return cmd
}

// serve starts what the gateway reaches GitHub by, and ends it with the test.
func (g *composeGateway) serve(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "atoll", "openclaw", "egress", "--listen", gatewayAddress+":443")
	cmd.Dir, cmd.Env = g.dir, g.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	if !lines.Scan() || !strings.Contains(lines.Text(), "on "+gatewayAddress+":443") {
		t.Errorf("it says %q", lines.Text())
	}
	t.Cleanup(func() {
		cancel()
		for lines.Scan() {
			t.Log(lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Log(err)
		}
	})
}

// run runs a script with the variables that the gateway's container has.
func (g *composeGateway) run(t *testing.T, script string) string {
	t.Helper()
	text, err := os.ReadFile(g.path("openclaw/egress.env"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := g.command(t, "sh", "-c", strings.ReplaceAll(script, "curl ", "curl --resolve *:443:"+gatewayAddress+" "))
	seen := strings.ReplaceAll(string(text), "/etc/openclaw/trust", g.path("openclaw/trust"))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "GIT_TERMINAL_PROMPT=0"}, strings.Split(strings.TrimSpace(seen), "\n")...)
	out, _ := cmd.CombinedOutput() // a refused request fails
	return string(out)
}
