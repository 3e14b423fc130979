package otheruser_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestOpenStopsAtTheTemporaryDirectory(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", top+"/")
	before := mode(t, top)
	otheruser.Open(t, below)
	otheruser.Open(t, top)
	otheruser.Open(t, "/")
	for _, dir := range []string{below, filepath.Dir(below)} {
		if got := mode(t, dir).Perm(); got != 0o755 {
			t.Errorf("%s: %v", dir, got)
		}
	}
	if got := mode(t, top); got != before {
		t.Errorf("the temporary directory: %v, was %v", got, before)
	}
}

// Programs are written and run while others are started.
func TestProgramsAreNotBusy(t *testing.T) {
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			for range 25 {
				path := filepath.Join(dir, name)
				_ = os.Remove(path)
				otheruser.Program(t, path, text)
				if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
