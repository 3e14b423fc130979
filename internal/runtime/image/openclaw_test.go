package image

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/images"
	"github.com/atoll-run/atoll/internal/errhint"
)

const openclawTarget = "cogni-sandbox-openclaw:latest"

func openclawBase(t *testing.T) string {
	t.Helper()
	return defaultsOf(t, "openclaw")[ArgOpenClawBase]
}

// OpenClaw's image is made from a published image of one version; a local image of
// another name is refused.
//
// Seen to fail with ARG OPENCLAW_BASE=openclaw:local in images/openclaw/Dockerfile.
func TestInvariant_IMAGE_FROM_PUBLISHED_BASE(t *testing.T) {
	base := openclawBase(t)
	if err := checkPublished(base); err != nil || strings.HasSuffix(base, ":latest") {
		t.Errorf("the default is %s: %v", base, err)
	}
	text, err := fs.ReadFile(images.Files, "openclaw/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\nFROM ${OPENCLAW_BASE} AS openclaw\n", "\nCOPY --from=openclaw /app /app\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the Dockerfile does not say %q", strings.TrimSpace(line))
		}
	}
	for _, own := range []string{"openclaw:local", "ghcr.io/openclaw/openclaw:local", "openclaw", "openclaw/openclaw:1", "ghcr.io/openclaw/openclaw"} {
		engine := memory{images: map[string]string{own: "", sandboxTarget: "sandbox"}}
		_, err := Build(t.Context(), &engine, find(t, "openclaw"), Options{Args: map[string]string{ArgOpenClawBase: own}}, nil)
		if err == nil || len(engine.asked) > 0 {
			t.Errorf("%s was taken: %v, %v", own, err, engine.asked)
		}
	}
}

// standInNpm puts a program before npm that installs what an installation looks
// like: the real one takes minutes, and scripts/openclaw.sh runs it.
func standInNpm(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("OPENCLAW_TREE", "")
	t.Setenv("NPM_CONFIG_REGISTRY", "")
	t.Setenv("npm_config_registry", "")
}

const npmWorks = `
if [ "$*" = "config get registry" ]; then echo https://mirror.example/; exit; fi
mkdir -p node_modules/.bin node_modules/node/bin node_modules/openclaw/dist
echo node >node_modules/node/bin/node
ln -sf ../node/bin/node node_modules/.bin/node`

func TestOpenClawWithoutARegistry(t *testing.T) {
	cases := []struct {
		name, npm string
		want      string // error, "" for success
	}{
		{"works", npmWorks, ""},
		{"fails", "echo 'npm error network' >&2; exit 1", "npm error network"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			standInNpm(t, c.npm)
			engine := memory{images: map[string]string{sandboxTarget: "sandbox"}}
			var progress bytes.Buffer
			ref, err := Build(t.Context(), &engine, find(t, "openclaw"), Options{}, &progress)
			if !strings.Contains(progress.String(), "WARNING: making it from npm instead, under the same name") {
				t.Errorf("progress does not say what happens:\n%s", &progress)
			}
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || errhint.Of(err) == "" || slices.ContainsFunc(engine.asked, isBuild) {
					t.Errorf("error %v, hint %q, asked %v", err, errhint.Of(err), engine.asked)
				}
				return
			}
			want := []string{"pull " + openclawBase(t), "import " + openclawBase(t), "build " + openclawTarget + " on " + sandboxTarget}
			if err != nil || ref != openclawTarget || !slices.Equal(want, engine.asked) {
				t.Errorf("%s, %v, asked %v", ref, err, engine.asked)
			}
			if engine.built.Args[ArgOpenClawBase] != openclawBase(t) || engine.built.Args[ArgRegistry] != "https://mirror.example/" {
				t.Errorf("built with %v", engine.built.Args)
			}
		})
	}
}

func isBuild(asked string) bool { return strings.HasPrefix(asked, "build") }

// What a user asked for is never exchanged.
func TestAnotherOpenClawIsNotMade(t *testing.T) {
	standInNpm(t, npmWorks)
	engine := memory{images: map[string]string{sandboxTarget: "sandbox"}}
	other := "registry.example.com/openclaw:2026.9.6"
	_, err := Build(t.Context(), &engine, find(t, "openclaw"), Options{Args: map[string]string{ArgOpenClawBase: other}}, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be pulled") || slices.ContainsFunc(engine.asked, isBuild) {
		t.Errorf("error %v, asked %v", err, engine.asked)
	}
}

// A tree of other versions is not passed off as the one that was asked for.
func TestATreeOfAnotherVersionIsRefused(t *testing.T) {
	standInNpm(t, npmWorks)
	tree := t.TempDir()
	for name, version := range map[string]string{"openclaw": "2025.1.1", "node": "24.21.0"} {
		dir := filepath.Join(tree, "node_modules", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), fmt.Appendf(nil, "{\n  \"version\": %q\n}\n", version), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OPENCLAW_TREE", tree)
	engine := memory{images: map[string]string{sandboxTarget: "sandbox"}}
	_, err := Build(t.Context(), &engine, find(t, "openclaw"), Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "holds OpenClaw 2025.1.1 on 24.21.0, not") {
		t.Errorf("error %v", err)
	}
}

func TestStoreIsNamedByItsLockfile(t *testing.T) {
	lockfile, err := os.ReadFile("testdata/pnpm-lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	engine := memory{images: map[string]string{openclawTarget: "sandboxer"}}
	ref, err := Build(t.Context(), &engine, find(t, "pnpm-store"), Options{Lockfile: lockfile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if hash := lockfileHash(lockfile); ref != "pnpm-store:"+hash[:16] || engine.built.Labels[LabelLockfile] != hash {
		t.Errorf("%s with labels %v", ref, engine.built.Labels)
	}
	if _, passed := engine.built.Args[ArgFinalUser]; passed {
		t.Errorf("a user was chosen: %v", engine.built.Args)
	}
	if other := StoreReference(append(lockfile, '\n')); other == ref {
		t.Error("another lockfile has the same name")
	}
}

func TestLockfilesThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		recipe   string
		lockfile []byte
		want     string
	}{
		"none":         {"pnpm-store", nil, "no lockfile"},
		"another kind": {"pnpm-store", []byte(`{"lockfileVersion": 3}`), "not one of pnpm's"},
		"too large":    {"pnpm-store", make([]byte, MaxLockfile+1), "more than"},
		"no use":       {"openclaw", []byte("lockfileVersion: '9.0'"), "no use for a lockfile"},
	} {
		engine := memory{images: map[string]string{}}
		_, err := Build(t.Context(), &engine, find(t, c.recipe), Options{Lockfile: c.lockfile}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(engine.asked) > 0 {
			t.Errorf("%s: error %v, asked %v", name, err, engine.asked)
		}
	}
}

func TestTrustedAuthorities(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		used bool
	}{
		"bundle":  {"-----BEGIN CERTIFICATE-----\nx\n", true},
		"nothing": {"", false},
		"a key":   {"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n", false},
	} {
		path := filepath.Join(dir, "ca.crt")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := trusted(func(string) string { return path }); (len(got) > 0) != c.used {
			t.Errorf("%s: %q", name, got)
		}
	}
}
