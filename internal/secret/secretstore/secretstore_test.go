package secretstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

func TestSecretsAreKeptListedAndRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	if all, err := secretstore.List(dir); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	for _, value := range []string{"first", "second"} {
		if err := secretstore.Keep(dir, "github", value); err != nil {
			t.Fatal(err)
		}
	}
	file, ok := secretstore.Find(dir, "github")
	text, err := os.ReadFile(file)
	if !ok || err != nil || string(text) != "second\n" {
		t.Error(ok, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	for name, content := range map[string]string{".new-1": "x", "a b": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if all, err := secretstore.All(dir); err != nil || len(all) != 1 || all["github"] != "second" {
		t.Error(len(all), err)
	}
	if err := secretstore.Remove(dir, "github"); err != nil {
		t.Error(err)
	}
	if err := secretstore.Remove(dir, "github"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := secretstore.Remove(dir, "../secrets"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"github": true, "GITHUB_TOKEN": true, "npm-2.x": true, "": false, ".x": false, "-x": false, "../x": false, "a/b": false, "a b": false, "ä": false, strings.Repeat("a", 65): false,
	} {
		if err := secretstore.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestTheFirstIsKept has many keep a value of their own at the same time: all get the same.
func TestTheFirstIsKept(t *testing.T) {
	dir := t.TempDir()
	kept := make([]string, 16)
	var all sync.WaitGroup
	for i := range kept {
		all.Go(func() {
			var err error
			if kept[i], err = secretstore.KeepFirst(dir, "x", fmt.Sprint("value-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, value := range kept {
		if value != kept[0] || !strings.HasPrefix(value, "value-") {
			t.Errorf("%q and %q", value, kept[0])
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}
