package dashboard_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// What is embedded is what web/ builds, byte by byte, and its types are those of the
// HTTP interface.
func TestBuiltFromSources(t *testing.T) {
	need.Time(t, "it builds web/ with packages of npm")
	out, err := exec.CommandContext(t.Context(), "../../../scripts/sdks.sh", "dir", "dashboard").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "vite")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up dashboard", err))
	}
	tree := t.TempDir()
	copyTree(t, "../../../web", filepath.Join(tree, "web"))
	copyTree(t, "../../../sdk/typescript/scripts", filepath.Join(tree, "sdk/typescript/scripts"))
	copyTree(t, "../../../api", filepath.Join(tree, "api"))
	if err := os.Symlink(modules, filepath.Join(tree, "web/node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "npm run --silent check && node_modules/.bin/vite build --logLevel error && node scripts/compress.mjs ../built")
	cmd.Dir = filepath.Join(tree, "web")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want, got := files(t, "dist"), files(t, filepath.Join(tree, "built")); !equal(want, got) {
		t.Error("what is embedded is not what web/ builds: run `make dashboard` and commit the result")
	}
}

// copyTree copies the files of a directory, without what npm and vite put there.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	for name, data := range files(t, from) {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns the files below a directory by their names.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || name == "dist"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func equal(a, b map[string][]byte) bool {
	for name, data := range a {
		if !bytes.Equal(data, b[name]) {
			return false
		}
	}
	return len(a) > 0 && len(a) == len(b)
}
