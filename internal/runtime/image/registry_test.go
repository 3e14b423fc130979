package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The registry is npm's own setting: a variable, or what npm answers.
func TestNpmRegistry(t *testing.T) {
	dir := t.TempDir()
	npm := "#!/bin/sh\n[ \"$*\" = 'config get registry' ] && echo https://mirror.example/npm/\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(npm), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for variable, want := range map[string]string{"": "https://mirror.example/npm/", "http://127.0.0.1:4873": "http://127.0.0.1:4873"} {
		got, err := npmRegistry(t.Context(), func(name string) string {
			if name == "NPM_CONFIG_REGISTRY" {
				return variable
			}
			return ""
		})
		if got != want || err != nil {
			t.Errorf("%q: %q, %v", variable, got, err)
		}
	}
	for _, bad := range []string{"https://user:password@mirror.example/", "https://mirror.example/; rm -rf /", "file:///x"} {
		if got, err := npmRegistry(t.Context(), func(string) string { return bad }); err == nil {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := npmRegistry(t.Context(), func(string) string { return "" }); err == nil || !strings.Contains(errhint.Of(err), "NPM_CONFIG_REGISTRY") {
		t.Errorf("without npm: %v", err)
	}
}

// No recipe has the address of a package registry written into it.
func TestRecipesNameNoRegistry(t *testing.T) {
	for _, r := range Recipes() {
		text, err := r.dockerfile(nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "://registry.") {
			t.Errorf("%s names a registry", r.Name)
		}
	}
}
