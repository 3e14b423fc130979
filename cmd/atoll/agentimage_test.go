//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// packedPackage returns the archive of a package of npm with executable files.
func packedPackage(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	w := tar.NewWriter(packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// agentRegistry serves packages, each in whatever version is asked for, and returns its
// address.
func agentRegistry(t *testing.T, packages map[string][]byte, version map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		if archive, ok := packages[strings.TrimSuffix(path.Dir(name), "/-")]; ok && err == nil && strings.HasSuffix(name, ".tgz") {
			_, _ = w.Write(archive)
			return
		}
		archive, ok := packages[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		sum := sha512.Sum512(archive)
		_ = json.NewEncoder(w).Encode(map[string]any{"dist-tags": map[string]string{"latest": version[name]}, "versions": map[string]any{
			version[name]: map[string]any{"version": version[name], "dist": map[string]string{"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}},
		}})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// smallAgent returns the address of a registry with a Claude Code, an npm and a Node.js
// that are scripts, as far as the build of an image asks them.
func smallAgent(t *testing.T) string {
	t.Helper()
	node := "node-linux-" + strings.ReplaceAll(runtime.GOARCH, "amd64", "x64")
	const claude = "@anthropic-ai/claude-code"
	return agentRegistry(t, map[string][]byte{
		node: packedPackage(t, map[string]string{"bin/node": "#!/bin/sh\nexec sh \"$@\"\n"}),
		"npm": packedPackage(t, map[string]string{"bin/npm-cli.js": `mkdir -p node_modules/.bin
if [ -e node_modules/npm ]; then
	ln -s ../npm/bin/npm-cli.js node_modules/.bin/npm
	ln -s ../npm/bin/npm-cli.js node_modules/.bin/npx
else
	ln -s ../@anthropic-ai/claude-code/claude node_modules/.bin/claude
fi
`}),
		claude: packedPackage(t, map[string]string{"claude": "#!/bin/sh\necho BUILT at $(pwd); read line; echo got $line; exit 6\n"}),
	}, map[string]string{node: "24.21.0", "npm": "11.21.1", claude: "2.1.325"})
}

// A person without the program and without its image is offered to build it; after a
// yes the agent runs in the image at once, and the next time without a question.
func TestOfferedImageIsBuilt(t *testing.T) {
	p := newAgentPlace(t, 3)
	bin := filepath.Join(p.dir, "bin") // without npm: a registry is asked
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(git, filepath.Join(bin, "git")); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "PATH="+bin, "NPM_CONFIG_REGISTRY="+smallAgent(t))
	s := p.screen("claude")
	s.await("Claude Code is not installed. Build a sandbox image with @anthropic-ai/claude-code@2.1.325 of npm now? [Y/n]")
	s.enter("yes")
	s.await("claude:latest")
	s.await("BUILT at /workspace")
	s.enter("words")
	s.await("got words")
	if code := s.wait(); code != 6 {
		t.Errorf("exit code %d:\n%s", code, s.text())
	}
	again := p.screen("claude")
	again.await("BUILT at /workspace")
	again.enter("more")
	if code := again.wait(); code != 6 || strings.Contains(withoutBlanks(again.text()), "notinstalled") {
		t.Errorf("exit code %d:\n%s", code, again.text())
	}
}
