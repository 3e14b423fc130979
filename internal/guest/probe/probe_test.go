package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// Programs inside may put anything in the place of a file that the probe reads:
// a FIFO without a writer does not block it, and a long file is cut.
func TestWhatIsNoFileHasNoLines(t *testing.T) {
	dir := t.TempDir()
	pipe, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "long")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, []byte(strings.Repeat("nameserver 192.0.2.1\n", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{pipe: 0, dir: 0, filepath.Join(dir, "missing"): 0, long: 4 * findings.MaxEntries} {
		if got := len(lines(path)); got != want {
			t.Errorf("%s: %d lines, want %d", path, got, want)
		}
	}
}

// A crowd does not hide who has no parent here.
func TestProcessesWithoutAParentComeFirst(t *testing.T) {
	seen, hidden := processes()
	if len(seen) == 0 || len(seen) > maxSeen || hidden < 0 {
		t.Fatalf("%d seen, %d hidden", len(seen), hidden)
	}
	parents := false
	for _, p := range seen {
		if p.Parent == 0 && parents {
			t.Errorf("process %d comes after one with a parent", p.PID)
		}
		parents = parents || p.Parent != 0
	}
	if !parents {
		t.Error("this process has a parent, and is not among them")
	}
}
