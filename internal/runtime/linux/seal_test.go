package linux

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A fork that was killed between its steps is finished by the next start: the
// intent is in the record, and the changes are in one place or the other.
func TestSealIsFinishedWhereverItStopped(t *testing.T) {
	for name, moved := range map[string]bool{"before the move": false, "after the move": true} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			i := &Instance{name: "box", dir: filepath.Join(state, "box"), record: &record{
				Spec: &sandbox.Spec{Name: "box"}, Root: &rootfs.Root{}, Sealing: filepath.Join(state, "layers", "fork-x", "fs"),
			}}
			if err := os.MkdirAll(i.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := i.makeChanges(); err != nil {
				t.Fatal(err)
			}
			upper := filepath.Join(i.path(changesDir), "upper")
			if err := os.WriteFile(filepath.Join(upper, "f"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			layer := i.record.Sealing
			if moved {
				if err := os.MkdirAll(filepath.Dir(layer), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(upper, layer); err != nil {
					t.Fatal(err)
				}
			}
			if err := i.seal(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(layer, "f")); string(got) != "kept" {
				t.Errorf("layer holds %q, %v", got, err)
			}
			if left, err := os.ReadDir(upper); len(left) > 0 || err != nil {
				t.Errorf("changes are %v, %v", left, err)
			}
			if again, err := load(i.dir); err != nil || again.Sealing != "" {
				t.Errorf("record = %+v, %v", again, err)
			}
		})
	}
}
