package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// begun checks AsBegun for each path.
func (s *stage) begun(t *testing.T, want map[string]bool) {
	t.Helper()
	for path, want := range want {
		got, err := s.AsBegun(path)
		if err != nil || got != want {
			t.Errorf("AsBegun(%q) = %v, %v, want %v", path, got, err, want)
		}
	}
}

func TestAsBegun(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.begun(t, map[string]bool{"README.md": true, "src/cart.go": true, "src": true, "link": true, "not/there": true, "swap/below": true, "new": true})
		at := func(name string) string { return filepath.Join(s.Base, name) }
		info, err := os.Stat(at("src/cart.go"))
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s.Base, map[string]string{"README.md": "saved\n", "not/there": "now\n", "new": "new\n"})
		err = errors.Join(
			os.WriteFile(at("src/cart.go"), []byte("CART\n"), 0o644), os.Chtimes(at("src/cart.go"), info.ModTime(), info.ModTime()), // size and time kept
			os.Rename(at("dir"), at("dir2")), os.Rename(at("old"), at("dir")), // another directory under the name
			os.Chmod(at("run.sh"), 0o755),
			os.Remove(at("same")),
			os.Remove(at("link")), os.Symlink("README.md", at("link")))
		if err != nil {
			t.Fatal(err)
		}
		s.begun(t, map[string]bool{"README.md": false, "src/cart.go": false, "src/util.go": true, "not/there": false, "not/other": false, "new": false,
			"dir/legacy.go": false, "dir/none": false, "old/legacy.go": false, "run.sh": false, "same": false, "link": false, "src/none": true})

		if err := s.NoteApplied("README.md", "src/cart.go", "not/there", "new", "same", "run.sh"); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"README.md": true, "src/cart.go": true, "not/there": true, "not/other": true, "new": true, "same": true, "run.sh": true, "old/legacy.go": false}
		s.begun(t, want)
		again, err := Load(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		(&stage{Tree: again}).begun(t, want)
		if err := os.WriteFile(at("README.md"), []byte("again\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s.begun(t, map[string]bool{"README.md": false})
	})
}

func TestAsBegunRefusesPathsThatLeave(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		for _, path := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../b", "a//b"} {
			if _, err := s.AsBegun(path); err == nil {
				t.Errorf("AsBegun(%q) succeeded", path)
			}
		}
	})
}

func TestBaseThatIsGone(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x > x")
		if err := os.Rename(s.Base, s.Base+".away"); err != nil {
			t.Fatal(err)
		}
		check := func(when string) {
			t.Helper()
			_, begun := s.AsBegun("x")
			_, open := s.Open("x")
			var read error
			for _, err := range s.Changes(t.Context()) {
				read = err
			}
			for _, err := range []error{begun, open, read, s.NoteApplied("x")} {
				if !errors.Is(err, ErrBaseGone) {
					t.Errorf("%s: %v, want ErrBaseGone", when, err)
				}
			}
		}
		check("deleted")
		if err := os.Mkdir(s.Base, 0o755); err != nil {
			t.Fatal(err)
		}
		check("another directory")
		if _, err := Prepare(t.Context(), s.request); !errors.Is(err, ErrBaseGone) {
			t.Errorf("Prepare: %v, want ErrBaseGone", err)
		}
	})
}

// Two processes work with one overlay, and one of them was killed while it wrote.
func TestNotesOfTwoProcesses(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		other, err := Load(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s.Base, map[string]string{"README.md": "saved\n", "same": "saved\n", "swap": "saved\n"})
		s.begun(t, map[string]bool{"README.md": false, "same": false, "swap": false})
		if err := other.NoteApplied("README.md"); err != nil {
			t.Fatal(err)
		}
		s.begun(t, map[string]bool{"README.md": true, "same": false})
		file, err := os.OpenFile(filepath.Join(s.Dir, appliedName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString(`{"path":"\"swap\"","entry":{"mode":33`)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		s.begun(t, map[string]bool{"README.md": true, "same": false, "swap": false})
		if err := s.NoteApplied("same"); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"README.md": true, "same": true, "swap": false}
		s.begun(t, want)
		(&stage{Tree: other}).begun(t, want)
		s.expect(t)
	})
}

// Another boot may give the device of the base another number.
func TestDeviceOfAnotherBoot(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x >> README.md")
		if err := AfterStop(s.Dir); err != nil {
			t.Fatal(err)
		}
		before, err := Load(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		before.BaseID.Device++
		if err := before.save(); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(t.Context(), s.request); !errors.Is(err, ErrBaseGone) {
			t.Errorf("another device in the same boot: %v", err)
		}
		before.Boot = "another"
		if err := before.save(); err != nil {
			t.Fatal(err)
		}
		(&stage{Tree: before}).expect(t, "modified README.md")
		after, err := Prepare(t.Context(), s.request)
		if err != nil || after.BaseID != s.BaseID {
			t.Fatalf("another device after another boot: %v", err)
		}
		again := &stage{Tree: after}
		again.expect(t, "modified README.md")
		again.begun(t, map[string]bool{"src/cart.go": true, "README.md": true})
	})
}
