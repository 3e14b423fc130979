package overlay

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// The files in which the state of the base is kept.
const (
	baseManifest = "base.manifest" // as it was when the agent began
	treeManifest = "tree.manifest" // a copy, as it was made
	appliedName  = "applied"       // what counts as begun in spite of base.manifest, a line each
)

// notes is what the base was when the agent began.
type notes struct {
	base    *manifest
	applied map[string]appliedLine
	live    int64 // bytes of applied that count
	read    versions

	dir     string // whose entries were read last
	entries map[string]entry
}

// appliedLine is one path that is not as in the manifest any more, with the
// knowledge of the agent or by its own change.
type appliedLine struct {
	Path  quoted       `json:"path"`
	Entry *entry       `json:"entry"`        // nil: nothing is there
	ID    *hostpath.ID `json:"id,omitempty"` // of a directory
	// Above is what the sandbox had there, which was the same; nil if it was not.
	Above *aboveNote `json:"above,omitempty"`
}

// aboveNote is what the sandbox had at a path when it was the same as the base's.
type aboveNote struct {
	Gone  bool  `json:"gone,omitempty"` // deleted there and in the base
	Entry entry `json:"entry,omitzero"`
}

// quoted is a path of any bytes, in a form that JSON keeps.
type quoted string

// MarshalText returns the path as a quoted string of ASCII.
func (q quoted) MarshalText() ([]byte, error) { return []byte(strconv.QuoteToASCII(string(q))), nil }

// UnmarshalText reads what MarshalText returns.
func (q *quoted) UnmarshalText(text []byte) error {
	plain, err := strconv.Unquote(string(text))
	*q = quoted(plain)
	return err
}

// loadNotes reads the notes, again only if another process has changed them. The
// caller holds t.mu.
func (t *Tree) loadNotes() (*notes, error) {
	manifestAt, appliedAt := filepath.Join(t.Dir, baseManifest), filepath.Join(t.Dir, appliedName)
	now := versions{versionOf(manifestAt), versionOf(appliedAt)}
	if t.notes != nil && t.notes.read == now {
		return t.notes, nil
	}
	base, err := openManifest(manifestAt)
	if err != nil {
		return nil, err
	}
	applied, live, err := scanApplied(appliedAt)
	if err != nil {
		base.close()
		return nil, err
	}
	if t.notes != nil {
		t.notes.base.close()
	}
	t.notes = &notes{base: base, applied: applied, live: live, read: now}
	return t.notes, nil
}

// applied returns what counts as begun in spite of the manifest, by path. It is not
// changed later.
func (t *Tree) applied() (map[string]appliedLine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		return nil, err
	}
	return n.applied, nil
}

// versions tells whether the files of the notes are those that were read.
type versions struct{ manifest, applied entry }

// versionOf returns what changes with a file; nothing if it is not there.
func versionOf(name string) entry {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return entry{}
	}
	return entryOf(&st)
}

// forgetNotes closes the notes, which are read again when they are needed.
func (t *Tree) forgetNotes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notes != nil {
		t.notes.base.close()
		t.notes = nil
	}
}

// dirID returns which directory was at a path.
func (n *notes) dirID(rel string) (hostpath.ID, bool) {
	if line, ok := n.applied[rel]; ok {
		if line.ID == nil {
			return hostpath.ID{}, false
		}
		return *line.ID, true
	}
	note, ok := n.base.dirs[rel]
	return note.id, ok
}

// entry returns what was at a path.
func (n *notes) entry(rel string) (entry, bool, error) {
	if line, ok := n.applied[rel]; ok {
		if line.Entry == nil {
			return entry{}, false, nil
		}
		return *line.Entry, true, nil
	}
	dir, name := path.Split(rel)
	if dir = strings.TrimSuffix(dir, "/"); n.entries == nil || dir != n.dir {
		all, err := n.base.entries(dir)
		if err != nil {
			return entry{}, false, err
		}
		n.dir, n.entries = dir, all
	}
	e, ok := n.entries[name]
	return e, ok, nil
}

// NoteApplied makes what is in the base at these paths now, and the directories
// above, count as what the agent began with. It is for what was applied or put
// back, and for edits of the host that were handed to the sandbox.
func (t *Tree) NoteApplied(paths ...string) error {
	return t.note(paths, true, func(_ *notes, _ string, lines []appliedLine) ([]appliedLine, error) { return lines, nil })
}

// note appends what change makes of the lines of each path: what is in the base there
// now, the last line, and the directories above it that are not the noted ones. If
// durable they are on disk when it returns.
func (t *Tree) note(paths []string, durable bool, change func(*notes, string, []appliedLine) ([]appliedLine, error)) error {
	root, err := t.openBase()
	if err != nil {
		return err
	}
	defer root.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		return err
	}
	above, err := hostpath.OpenDir(t.above())
	if err != nil {
		return err
	}
	defer above.Close()
	var lines []appliedLine
	for _, rel := range paths {
		more, err := t.linesFor(root, above, n, rel)
		if err == nil {
			more, err = change(n, rel, more)
		}
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	return t.appendApplied(lines, n.live, durable)
}
