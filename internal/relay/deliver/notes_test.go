package deliver

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// A note that cannot be read hides none of the others, and one is never seen
// half written.
//
// Seen to fail with a list that ends at the first error.
func TestABrokenNoteHidesNoOther(t *testing.T) {
	notes := Notes[ContainerWork]{filepath.Join(t.TempDir(), "deep", "notes")}
	for _, run := range []string{"a", "b", "d"} {
		if err := notes.Save(run, &ContainerWork{Run: run, Work: relay.Work{Key: "k"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(notes.file("c"), []byte(`{"run":"c","wo`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := notes.list()
	if len(list) != 3 || list[2].Run != "d" || err == nil || !strings.Contains(err.Error(), "c.json") {
		t.Errorf("%v, %v", list, err)
	}
	for range 2 {
		if err := notes.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if files, err := os.ReadDir(notes.dir); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	a := &Deliverer{Installation: &provide.Installation{Settings: &provide.Settings{}, Logger: slog.New(slog.DiscardHandler)}}
	a.Paths.AtollState = t.TempDir()
	if works := a.containerWorks(t.Context()); len(works) != 0 {
		t.Errorf("%v", works)
	}
}
