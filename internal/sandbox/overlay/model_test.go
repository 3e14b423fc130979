package overlay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestChangesGiveWhatTheSandboxHas runs random commands inside and checks that
// the base with the changes applied is the tree that is visible inside.
func TestChangesGiveWhatTheSandboxHas(t *testing.T) {
	rounds := need.Rounds(3, 12)
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			for seed := range rounds {
				compareRound(t, w, uint64(seed))
			}
		})
	}
}

func compareRound(t *testing.T, w way, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	s := newStage(t, w, map[string]string{"a/b/c": "abc\n", "a/b/d": "abd\n", "a/e": "ae\n", "b/a/c": "bac\n", "b/x": "bx\n", "c": "c\n", "d/a": "da\n", "e": "-> c", "x/b/c": "xbc\n"}, nil)
	seen := filepath.Join(t.TempDir(), "seen")
	script := randomScript(rng)
	s.inside(t, script+"\ncp -a . "+seen)
	applied := filepath.Join(t.TempDir(), "applied")
	if err := os.CopyFS(applied, os.DirFS(s.Base)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(applied, "e")), os.Symlink("c", filepath.Join(applied, "e"))); err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	var changes []Change
	for c, err := range s.Changes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if paths[c.Path] {
			t.Errorf("seed %d: %q is listed twice", seed, c.Path)
		}
		paths[c.Path] = true
		changes = append(changes, c)
	}
	s.applyTo(t, applied, changes)
	if got, want := contents(t, applied), contents(t, seen); got != want {
		t.Errorf("seed %d: %s\nchanges %s\ngive\n%s\ninside was\n%s", seed, script, s.lines(t), got, want)
	}
}

// randomScript returns commands on a few names, so that they often meet.
func randomScript(rng *rand.Rand) string {
	names := []string{"a", "b", "c", "d", "e", "x"}
	name := func() string {
		parts := make([]string, 1+rng.IntN(3))
		for i := range parts {
			parts[i] = names[rng.IntN(len(names))]
		}
		return strings.Join(parts, "/")
	}
	commands := []string{"echo %d > %s", "echo %d >> %s", ": %d; rm -rf %s", ": %d; mkdir %s", "ln -sfn target%d %s", ": %d; chmod 755 %s", ": %d; chmod 700 %s", ": %d; touch %s"}
	var script strings.Builder
	script.WriteString("set +e; exec 2>/dev/null\n")
	for i := range 25 {
		if rng.IntN(3) == 0 {
			fmt.Fprintf(&script, "mv -T %s %s\n", name(), name())
			continue
		}
		fmt.Fprintf(&script, "( "+commands[rng.IntN(len(commands))]+" )\n", i, name())
	}
	return script.String() + "set -e"
}

// applyTo does to a copy of the base what the changes say.
func (s *stage) applyTo(t *testing.T, dir string, changes []Change) {
	t.Helper()
	for _, c := range slices.Backward(changes) {
		if c.Kind == Deleted || c.Kind == Replaced {
			if err := os.RemoveAll(filepath.Join(dir, c.Path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var dirs []Change
	for _, c := range changes {
		if c.Kind == Deleted {
			continue
		}
		if c.Mode.IsDir() {
			dirs = append(dirs, c)
		}
		if err := s.applyOne(filepath.Join(dir, c.Path), c); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
	for _, c := range slices.Backward(dirs) {
		if err := os.Chmod(filepath.Join(dir, c.Path), c.Mode.Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *stage) applyOne(at string, c Change) error {
	switch {
	case c.Kind == Special:
		return errors.New("special")
	case c.Mode.IsDir():
		return os.MkdirAll(at, 0o755)
	case c.Mode&os.ModeSymlink != 0:
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		return os.Symlink(c.Link, at)
	case c.Kind == Mode:
		return os.Chmod(at, c.Mode.Perm())
	}
	file, err := s.Open(c.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(at, data, 0o600), os.Chmod(at, c.Mode.Perm()))
}

// contents lists a tree with modes, contents and link texts, without times.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data := []byte{}
		link := ""
		switch {
		case info.Mode().IsRegular():
			data, err = os.ReadFile(path)
		case info.Mode()&os.ModeSymlink != 0:
			link, err = os.Readlink(path)
		}
		fmt.Fprintf(&text, "%s %v %q%s\n", rel, info.Mode(), data, link)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}
