package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The paths of the index are those that git lists, in every version of it.
func TestTracked(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		top := repository(t)
		shell(t, top, "mkdir -p d/e && for i in $(seq 200); do echo $i > d/e/file-$i; echo $i > d/f-$i; done; echo x > d/$(printf %0200d 1); git add -A; echo y > later; git add -N later; git update-index --index-version "+version)
		got := open(t, top).Tracked()
		lines := strings.Split(shell(t, top, "git ls-files"), "\n")
		for _, name := range lines {
			if !got[name] {
				t.Errorf("version %s: %s is missing", version, name)
			}
		}
		if len(got) != len(lines) {
			t.Errorf("version %s: %d paths, not %d", version, len(got), len(lines))
		}
	}
}

// An index that is cut off anywhere has no paths, and does no harm.
func TestTrackedOfABrokenIndex(t *testing.T) {
	top := repository(t)
	shell(t, top, "git update-index --index-version 4")
	index := filepath.Join(top, ".git", "index")
	whole, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 12 + 64 {
		if err := os.WriteFile(index, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := open(t, top).Tracked(); len(got) > 0 {
			t.Fatalf("of %d bytes: %v", n, got)
		}
	}
}
