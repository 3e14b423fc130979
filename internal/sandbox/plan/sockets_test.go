package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// A directory too large to look at every file of it is said to be.
func TestLargeBindsAreSaid(t *testing.T) {
	dir := t.TempDir()
	for i := range hostpath.MaxLookEntries + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk := &socketSearch{}
	if _, complete := disk.SocketsBelow(dir); complete {
		t.Error("all of it was looked at")
	}
	if _, complete := disk.SocketsBelow(filepath.Join(dir, "1")); !complete {
		t.Error("a single file is too large")
	}
	if said := disk.warnings(); len(said) != 1 || !strings.Contains(said[0].Message, dir) {
		t.Errorf("got %v", said)
	}
}
