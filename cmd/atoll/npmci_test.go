//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// largeProject has some hundreds of packages with those that these need.
const largeProject = `{"name": "large", "version": "1.0.0", "private": true, "dependencies": {"express": "4.21.2", "eslint": "9.17.0", "webpack": "5.97.1"}}`

// minPackages is how many packages the project has at least.
const minPackages = 200

// TestNpmCi installs a large project in a sandbox by the preset alone, from the registry
// that npm of this machine uses.
func TestNpmCi(t *testing.T) {
	need.Time(t, "it installs hundreds of packages from npm's registry")
	npm := need.Program(t, "npm", "npm")
	r := newReader(t, nil)
	host := &npmHost{t: t, npm: npm, dir: r.path("project")}
	registry := host.registry()
	r.write("project/package.json", largeProject, 0o600)
	host.run("install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--ignore-scripts", "--no-audit", "--no-fund")
	packages := host.packages()
	r.mkdir(".atoll")
	r.chmod(".atoll", 0o700)
	r.write(".atoll/atoll.json5", fmt.Sprintf(`{ agents: { defaults: { sandbox: { backend: "linux", egress: { private: %s } } } } }`, privateNetworks(t, registry)), 0o600)
	lock, err := os.ReadFile(r.path("project/package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	const script = `tar -xf - && npm ci --no-audit --no-fund && ls -d node_modules/* node_modules/@*/* | wc -l && node -e 'require("express"); require("webpack")'`
	cmd := exec.CommandContext(t.Context(), "atoll", "run", "--rm", "--egress", "preset:npm", "--env", "NPM_CONFIG_REGISTRY="+registry, "--", "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.path("project"), append(r.env, "NPM_CONFIG_REGISTRY="+registry, "GORACE=atexit_sleep_ms=0"), time.Minute
	cmd.Stdin = strings.NewReader(string(plainTar(t, map[string]string{"package.json": largeProject, "package-lock.json": string(lock)})))
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "added ") {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d packages in %v: %s", packages, time.Since(began).Round(100*time.Millisecond), out)
}

// npmHost is npm as this machine has it.
type npmHost struct {
	t        *testing.T
	npm, dir string
}

func (h *npmHost) run(args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.npm, args...)
	cmd.Dir = h.dir
	out, err := cmd.Output()
	if err != nil {
		need.Missing(h.t, fmt.Errorf("npm %q: %w", args, err)) // no registry is reached from here
	}
	return strings.TrimSpace(string(out))
}

// registry is the address of the registry.
func (h *npmHost) registry() string {
	h.t.Helper()
	return h.run("config", "get", "registry")
}

// packages counts those of the lockfile, which names no address to fetch from.
func (h *npmHost) packages() int {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "package-lock.json"))
	var lock struct {
		Packages map[string]struct{ Resolved string }
	}
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			h.t.Errorf("%s has an address", name)
		}
	}
	if len(lock.Packages) < minPackages {
		h.t.Errorf("%d packages", len(lock.Packages))
	}
	return len(lock.Packages)
}

// privateNetworks are the addresses of a registry, as a configuration has them: it may
// be in a network of this machine's.
func privateNetworks(t *testing.T, registry string) string {
	t.Helper()
	u, err := url.Parse(registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		t.Fatal(err)
	}
	networks := make([]string, 0, len(found))
	for _, a := range found {
		a = a.Unmap()
		networks = append(networks, fmt.Sprintf("%s/%d", a, a.BitLen()))
	}
	text, err := json.Marshal(networks)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
