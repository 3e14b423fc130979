package clientconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
)

// TestKeysAreMadeOnce has several processes make the keys at once: all get the same.
func TestKeysAreMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ssh")
	var wg sync.WaitGroup
	keys := make([]string, 8)
	for i := range keys {
		wg.Go(func() {
			f, err := clientconfig.Make(dir, "/usr/bin/atoll")
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = string(f.Client.Marshal()) + string(f.Server.PublicKey().Marshal())
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("two callers got different keys")
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("%d files in the directory, want 5: %v", len(left), err)
	}
}

// TestKeysOfOthersAreRefused loads a key that others can read.
func TestKeysOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := clientconfig.Make(dir, "/usr/bin/atoll"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "server_ed25519"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := clientconfig.Load(dir); err == nil {
		t.Error("a key that others can read was taken")
	}
}

// TestPathsThatCannotBeQuoted are refused, since they reach a shell.
func TestPathsThatCannotBeQuoted(t *testing.T) {
	for _, path := range []string{"/a'b/atoll", `/a"b/atoll`, "/a$b/atoll", `/a\b`, "/a\nb", "relative"} {
		if _, err := clientconfig.Text("/state", path); err == nil {
			t.Errorf("%q was taken", path)
		}
	}
	text, err := clientconfig.Text("/with space/100%", "/opt/my programs/atoll")
	if err != nil || !strings.Contains(text, `'/opt/my programs/atoll' ssh proxy -- '%n'`) || !strings.Contains(text, `"/with space/100%%/id_ed25519"`) {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestInclude adds the line to files of all kinds and takes it out again.
func TestInclude(t *testing.T) {
	for name, before := range map[string]string{"no file": "", "a file": "Host *\n  ServerAliveInterval 5\n", "no last newline": "Host x\n  User y"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := clientconfig.Make(filepath.Join(dir, "state"), "/usr/bin/atoll")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, ".ssh", "config")
			if before != "" {
				write(t, path, before)
			}
			include(t, f, path).add(t)
			after := read(t, path)
			if !strings.HasPrefix(after, "Include ") || !strings.HasSuffix(after, before) {
				t.Errorf("after adding:\n%s", after)
			}
			include(t, f, path).remove(t)
			if after := read(t, path); after != before {
				t.Errorf("after removing: %q, want %q", after, before)
			}
		})
	}
}

type included struct{ *clientconfig.Include }

func include(t *testing.T, f *clientconfig.Files, path string) included {
	t.Helper()
	i, err := f.FindInclude(path)
	if err != nil {
		t.Fatal(err)
	}
	return included{i}
}

func (i included) add(t *testing.T) {
	t.Helper()
	if err := i.Add(); err != nil {
		t.Fatal(err)
	}
}

func (i included) remove(t *testing.T) {
	t.Helper()
	if !i.Has {
		t.Error("the line is not found")
	}
	if err := i.Remove(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
