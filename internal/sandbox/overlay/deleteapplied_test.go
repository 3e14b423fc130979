package overlay

import (
	"os"
	"path/filepath"
	"testing"
)

// What the agent added, a person applied and the agent deletes again is a deletion.
func TestDeletedAfterItWasApplied(t *testing.T) {
	eachWay(t, map[string]string{"README.md": "shop"}, func(t *testing.T, s *stage) {
		s.inside(t, "echo new >new; mkdir -p dir./sub; echo x >dir./sub/x")
		if err := os.MkdirAll(filepath.Join(s.Base, "dir.", "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"new": "new\n", "dir./sub/x": "x\n"} {
			if err := os.WriteFile(filepath.Join(s.Base, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.NoteApplied("new", "dir.", "dir./sub", "dir./sub/x"); err != nil {
			t.Fatal(err)
		}
		s.expect(t)
		s.inside(t, "rm -r new dir./sub")
		s.expect(t, "deleted dir./sub/", "deleted dir./sub/x", "deleted new")
	})
}
