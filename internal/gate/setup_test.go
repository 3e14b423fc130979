package gate

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// plainSource is a Source of two plain directories: the base and what the sandbox
// has instead. It is used where no overlay is needed, also by processes that are
// killed.
type plainSource struct {
	base, tree string
	mu         sync.Mutex
	begun      map[string]string // what was at a path
	torn       bool
}

func newPlainSource(base, tree string) *plainSource {
	s := &plainSource{base: base, tree: tree, begun: map[string]string{}}
	_ = filepath.WalkDir(base, func(path string, _ fs.DirEntry, _ error) error {
		rel, _ := filepath.Rel(base, path)
		s.begun[rel] = s.look(rel)
		return nil
	})
	return s
}

// look describes what the base has at a path; "" if nothing.
func (s *plainSource) look(rel string) string {
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(s.base, rel), &st) != nil {
		return ""
	}
	text := string(hostpath.KindOf(st.Mode))
	if data, err := os.ReadFile(filepath.Join(s.base, rel)); err == nil && hostpath.KindOf(st.Mode) == hostpath.KindFile {
		text += fs.FileMode(st.Mode&0o7777).String() + string(data)
	}
	if link, err := os.Readlink(filepath.Join(s.base, rel)); err == nil {
		text += link
	}
	return text
}

func (s *plainSource) Changes(context.Context) iter.Seq2[overlay.Change, error] {
	return func(yield func(overlay.Change, error) bool) {
		var all []overlay.Change
		err := filepath.WalkDir(s.tree, func(path string, _ fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(s.tree, path)
			if change, is := s.compare(rel); is && rel != "." {
				all = append(all, change)
			}
			return err
		})
		err = errors.Join(err, filepath.WalkDir(s.base, func(path string, _ fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(s.base, path)
			old, _ := os.Lstat(path)
			if _, gone := os.Lstat(filepath.Join(s.tree, rel)); gone != nil && old != nil {
				all = append(all, overlay.Change{Path: rel, Kind: overlay.Deleted, OldMode: old.Mode(), Torn: s.torn})
			}
			return err
		}))
		for _, change := range all {
			if !yield(change, nil) {
				return
			}
		}
		if err != nil {
			yield(overlay.Change{}, err)
		}
	}
}

// compare returns what changed at a path that the sandbox has.
func (s *plainSource) compare(rel string) (overlay.Change, bool) {
	now, err := os.Lstat(filepath.Join(s.tree, rel))
	if err != nil {
		return overlay.Change{}, false
	}
	c := overlay.Change{Path: rel, Kind: overlay.Added, Mode: now.Mode(), Size: now.Size(), Torn: s.torn}
	if now.Mode().Type() == fs.ModeSymlink {
		c.Kind = overlay.Link
		c.Link, _ = os.Readlink(filepath.Join(s.tree, rel))
	}
	if now.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 {
		c.Kind, c.Note = overlay.Special, "it is special"
		return c, true
	}
	old, err := os.Lstat(filepath.Join(s.base, rel))
	if err != nil {
		return c, true
	}
	c.OldMode = old.Mode()
	switch {
	case old.Mode().Type() != now.Mode().Type():
		c.Kind = overlay.Replaced
	case now.IsDir():
		return c, false
	case c.Link != "":
		text, _ := os.Readlink(filepath.Join(s.base, rel))
		return c, text != c.Link
	default:
		a, _ := os.ReadFile(filepath.Join(s.base, rel))
		b, _ := os.ReadFile(filepath.Join(s.tree, rel))
		c.Kind = overlay.Modified
		if string(a) == string(b) {
			c.Kind = overlay.Mode
			return c, old.Mode() != now.Mode()
		}
	}
	return c, true
}

func (s *plainSource) Open(path string) (*os.File, error) {
	root, err := hostpath.OpenDir(s.tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return hostpath.OpenRegularBeneath(root, path, hostpath.NoLimit)
}

func (s *plainSource) AsBegun(path string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[path] == s.look(path), nil
}

func (s *plainSource) NoteApplied(paths ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range paths {
		s.begun[path] = s.look(path)
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			s.begun[dir] = s.look(dir)
		}
	}
	return nil
}

// site is a base, a sandbox's tree and a gate between them.
type site struct {
	t      *testing.T
	dir    string
	source *plainSource
	opt    Options
	mu     sync.Mutex
	events []audit.FileEvent
}

// newSite makes a base with files, and a sandbox that has the same.
func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	for path, text := range files {
		s.write("base", path, text)
		s.write("tree", path, text)
	}
	for _, dir := range []string{"base", "tree"} {
		s.must(os.MkdirAll(filepath.Join(s.dir, dir), 0o755))
	}
	s.source = newPlainSource(s.path("base", ""), s.path("tree", ""))
	s.opt = Options{Dir: s.path("state", ""), Base: s.path("base", ""), Source: s.source, Record: func(e audit.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, *e.(*audit.FileEvent))
	}}
	return s
}

func (s *site) path(side, rel string) string { return filepath.Join(s.dir, side, rel) }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// write writes a file; "-> target" makes a link, and "+x " an executable.
func (s *site) write(side, rel, text string) {
	s.t.Helper()
	path := s.path(side, rel)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	if target, is := strings.CutPrefix(text, "-> "); is {
		s.must(os.Symlink(target, path))
		return
	}
	mode := fs.FileMode(0o644)
	if rest, is := strings.CutPrefix(text, "+x "); is {
		text, mode = rest, 0o755
	}
	s.must(os.WriteFile(path, []byte(text), mode))
	s.must(os.Chmod(path, mode))
}

func (s *site) remove(side, rel string) {
	s.t.Helper()
	s.must(os.RemoveAll(s.path(side, rel)))
}

// open opens the gate until the test ends.
func (s *site) open() *Gate {
	s.t.Helper()
	g, err := Open(s.t.Context(), s.opt)
	s.must(err)
	s.t.Cleanup(func() { s.must(g.Close()) })
	return g
}

func (s *site) collect(g *Gate) *Set {
	s.t.Helper()
	set, err := g.Collect(s.t.Context())
	s.must(err)
	return set
}

// passing returns choices of everything that passes.
func passing(set *Set) (choices []Choice) {
	for _, e := range set.Entries {
		if e.Verdict == Pass {
			choices = append(choices, Choice{e.Path, e.SHA256})
		}
	}
	return choices
}

// tree describes the files below a side: types, modes, contents, links.
func (s *site) tree(side string) string {
	s.t.Helper()
	var b strings.Builder
	s.must(filepath.WalkDir(s.path(side, ""), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(path)
		if err != nil || statErr != nil {
			return errors.Join(err, statErr)
		}
		rel, _ := filepath.Rel(s.path(side, ""), path)
		b.WriteString(rel + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(data))
		} else if link, err := os.Readlink(path); err == nil {
			b.WriteString(" -> " + link)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// verdicts returns the entries as lines.
func verdicts(set *Set) string {
	var lines []string
	for _, e := range set.Entries {
		line := string(e.Kind) + " " + e.Path + " " + string(e.Verdict)
		for _, f := range e.Reasons {
			line += " " + f.Rule
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
