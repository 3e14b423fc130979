package overlay

import (
	"fmt"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// The file of the notes is bounded by what counts in it, and two processes that write
// to it, while one of them writes it anew, lose no line.
func TestNotesAreBounded(t *testing.T) {
	need.Time(t, "it writes thousands of files")
	s := newStage(t, ways()[0], project(), nil)
	const rounds, repeats = 12, 800
	var work sync.WaitGroup
	for writer := range 2 {
		tree, err := Load(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			for round := range rounds {
				paths := append(slices.Repeat([]string{"README.md"}, repeats), fmt.Sprintf("gone-%d-%d", writer, round))
				if err := tree.NoteApplied(paths...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	name := filepath.Join(s.Dir, appliedName)
	found, live, err := scanApplied(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 2*compactAbove || found["README.md"].Entry == nil { // without the bound it would have more than 4 MiB
		t.Errorf("the file has %d bytes, of which %d count", info.Size(), live)
	}
	for writer := range 2 {
		for round := range rounds {
			if _, ok := found[fmt.Sprintf("gone-%d-%d", writer, round)]; !ok {
				t.Errorf("line %d of writer %d is lost", round, writer)
			}
		}
	}
	s.begun(t, map[string]bool{"README.md": true, "gone-0-0": true})
}

// A process that was killed while it wrote the notes anew leaves the old file.
func TestNotesThatWereNotWrittenAnew(t *testing.T) {
	s := newStage(t, ways()[0], project(), nil)
	fill(t, s.Base, map[string]string{"README.md": "saved\n"})
	if err := s.NoteApplied("README.md"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Dir, appliedName)
	if err := os.WriteFile(name+".new", []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begun(t, map[string]bool{"README.md": true})
	if err := compactApplied(name); err != nil {
		t.Fatal(err)
	}
	s.begun(t, map[string]bool{"README.md": true})
}
