package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// registryOf serves packages, each with versions and what a registry tells of them, and
// notes who asks. Archives have the text of their address.
func registryOf(t *testing.T, packages map[string]map[string]any) (r *Registry, asked *[]string, home string) {
	t.Helper()
	asked, home = new([]string), t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		name := strings.TrimPrefix(r.URL.Path, "/npm/")
		if strings.HasSuffix(name, ".tgz") {
			_, _ = fmt.Fprint(w, name)
			return
		}
		known, ok := packages[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		for version, release := range known {
			r := release.(map[string]any)
			r["version"] = version
			if r["dist"] == nil {
				r["dist"] = map[string]any{"integrity": integrity(name + "/-/" + filepath.Base(name) + "-" + version + ".tgz")}
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"dist-tags": map[string]string{"latest": "2.0.0"}, "versions": known})
	}))
	t.Cleanup(server.Close)
	text := "; a comment\nregistry = " + server.URL + "/npm\n" + strings.TrimPrefix(server.URL, "http:") + "/npm/:_authToken=${TOKEN}\n//other.example/:_authToken=other\n"
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := outbound.NewHost(outbound.Options{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	r = NewRegistry(host, func(name string) string { return map[string]string{"HOME": home, "TOKEN": "secret"}[name] })
	t.Cleanup(r.client.CloseIdleConnections)
	return r, asked, home
}

type release = map[string]any

// A program that brings everything along is resolved and fetched without npm, from the
// registry of npm's settings and with its credential.
func TestRegistry(t *testing.T) {
	r, asked, _ := registryOf(t, map[string]map[string]any{
		"@scope/tool": {"2.0.0": release{
			"dependencies": release{"inside": "1"}, "bundleDependencies": []string{"inside"}, "scripts": release{"postinstall": "node x"},
			"optionalDependencies": release{"tool-linux": "npm:@scope/tool@2.0.0-linux", "tool-mac": "1.0.0", "needy": "1.0.0", "ranged": "^1.0.0"},
		}, "2.0.0-linux": release{"os": []string{"linux"}}},
		"tool-mac": {"1.0.0": release{"os": []string{"darwin"}}},
		"needy":    {"1.0.0": release{"dependencies": release{"more": "1.0.0"}}},
	})
	tree, err := r.Resolve(t.Context(), "", Platform{OS: "linux", CPU: "x64"}, []string{"@scope/tool@latest"})
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) != 2 || tree[0].spec() != "@scope/tool@2.0.0" || !tree[0].Scripts || tree[1].Path != "node_modules/tool-linux" || tree[1].spec() != "@scope/tool@2.0.0-linux" || !tree[1].Optional {
		t.Fatalf("%+v", tree)
	}
	dir := t.TempDir()
	if err := r.Fetch(t.Context(), dir, tree, nil); err != nil {
		t.Fatal(err)
	}
	before := len(*asked)
	if err := r.Fetch(t.Context(), dir, tree, nil); err != nil || len(*asked) != before || len(missingIn(dir, tree)) > 0 {
		t.Errorf("%v, asked %v", err, (*asked)[before:])
	}
	if slices.ContainsFunc(*asked, func(s string) bool { return !strings.HasSuffix(s, " Bearer secret") }) {
		t.Errorf("asked %v", *asked)
	}
}

// What needs npm itself, what is not there and what is not what was resolved is refused.
func TestRegistryRefuses(t *testing.T) {
	r, _, home := registryOf(t, map[string]map[string]any{
		"needy": {"2.0.0": release{"dependencies": release{"more": "1.0.0"}}},
		"liar":  {"2.0.0": release{"dist": release{"integrity": integrity("something else")}}},
		"bare":  {"2.0.0": release{"dist": release{"integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}}},
	})
	for spec, want := range map[string]string{"needy@latest": "npm is not installed", "liar@9.9.9": "no version 9.9.9", "gone@latest": "404", "bare@2.0.0": "no SHA-512", "../etc@1.0.0": "not the name"} {
		if tree, err := r.Resolve(t.Context(), "", Platform{}, []string{spec}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v", spec, tree, err)
		}
	}
	tree, err := r.Resolve(t.Context(), "", Platform{}, []string{"liar@latest"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Fetch(t.Context(), dir, tree, nil); err == nil || !strings.Contains(err.Error(), "not the one that was resolved") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, registry := range []string{"", "http://registry.example/", "https://name:sesame@registry.example/"} {
		if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte("registry="+registry+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/etc/npmrc"); registry == "" && !errors.Is(err, fs.ErrNotExist) {
			continue // the machine names one
		}
		if _, err := r.Resolve(t.Context(), "", Platform{}, []string{"a@latest"}); err == nil || strings.Contains(err.Error(), "sesame") || registry == "" && errhint.Of(err) == "" {
			t.Errorf("%q: %v", registry, err)
		}
	}
}
