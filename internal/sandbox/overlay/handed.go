package overlay

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Untouched reports whether the agent has at a path what it began with, or what was
// handed to it since. It looks above the base only, so it holds although the base was
// edited. In doubt it is false.
func (t *Tree) Untouched(rel string) (bool, error) {
	if !fs.ValidPath(rel) || rel == "." || len(rel) > MaxPath {
		return false, hostpath.ErrEscapes
	}
	above, err := hostpath.OpenDir(t.above())
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		closeFile(above)
		return false, err
	}
	return t.untouched(n, above, rel)
}

// untouched walks down from the directory above, which it closes.
func (t *Tree) untouched(n *notes, above *os.File, rel string) (bool, error) {
	defer func() { closeFile(above) }()
	shines := t.Kind == Kernel // the base is seen where nothing is above it
	for at, rest := "", rel; ; {
		name, below, more := strings.Cut(rest, "/")
		at, rest = path.Join(at, name), below
		st, err := statAt(above, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && shines:
			return true, nil
		case errors.Is(err, fs.ErrNotExist):
			_, was, err := n.entry(rel)
			return !was, err
		case err != nil:
			return false, err
		case !more || st.Mode&unix.S_IFMT != unix.S_IFDIR:
			return !more && t.isHanded(n, above, at, &st), nil
		}
		next, err := openDirAt(above, name)
		if err != nil {
			return false, err
		}
		closeFile(above)
		above = next
		marks, err := t.marksOf(above)
		_, handed := n.applied[at]
		if err != nil || marks.redirect != "" || marks.opaque && !handed {
			return false, err
		}
		shines = shines && !marks.opaque
	}
}

// marksOf returns the marks of a directory of the upper; a copy has none.
func (t *Tree) marksOf(dir *os.File) (dirMarks, error) {
	if t.Kind == Copy {
		return dirMarks{}, nil
	}
	return t.Marks.readMarks(dir, "", true)
}

// isHanded reports whether an entry above the base is what was handed to the agent,
// or in a copy what the copy was made with.
func (t *Tree) isHanded(n *notes, dir *os.File, at string, st *unix.Stat_t) bool {
	noted, was, err := n.entry(at)
	now := entryOf(st)
	switch {
	case err != nil:
		return false
	case t.Kind == Kernel && isWhiteout(st):
		return !was
	case now.isDir():
		return was && noted.isDir()
	case t.Kind == Copy && t.asCopied(at, now):
		return true
	case !now.isRegular() || noted.Sum == "" || noted.Ino != 0 && now.Mode&0o777 != noted.Mode&0o777:
		return false
	}
	sum, err := sumAt(dir, path.Base(at))
	return err == nil && sum == noted.Sum
}

// asCopied reports whether an entry of a copy is as it was made.
func (t *Tree) asCopied(at string, now entry) bool {
	m, err := openManifest(filepath.Join(t.Dir, treeManifest))
	if err != nil {
		return false
	}
	defer m.close()
	dir, name := path.Split(at)
	entries, err := m.entries(strings.TrimSuffix(dir, "/"))
	made := entries[name]
	made.Link = ""
	return err == nil && made == now
}

// NoteHanded makes what the agent was given count as what it began with: by path a
// content's SHA-256, or "" for nothing. Where the base has something else by now, that
// is an edit which the agent has not seen.
func (t *Tree) NoteHanded(handed map[string]string) error {
	paths := slices.Sorted(maps.Keys(handed))
	return t.note(paths, false, func(n *notes, rel string, lines []appliedLine) ([]appliedLine, error) {
		return handedLines(n, rel, handed[rel], lines)
	})
}

// handedLines returns the lines of one path, from those of what the base has there.
func handedLines(n *notes, rel, sum string, lines []appliedLine) ([]appliedLine, error) {
	if sum == "" {
		if _, was, err := n.entry(rel); !was || err != nil {
			return nil, err
		}
		return []appliedLine{{Path: quoted(rel)}}, nil
	}
	above, last := lines[:len(lines)-1], lines[len(lines)-1]
	if last.Entry == nil || last.Entry.Sum != sum || string(last.Path) != rel {
		last = appliedLine{Path: quoted(rel), Entry: &entry{Mode: unix.S_IFREG, Sum: sum}}
	}
	return append(above, last), nil
}

// followedName is a file whose time says up to when edits of the host were looked for.
const followedName = "followed"

// NoteFollowed records that all edits of the host before a moment were looked for.
func (t *Tree) NoteFollowed(until time.Time) error {
	name := filepath.Join(t.Dir, followedName)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Chtimes(name, until, until))
}

// MayHaveEdits reports whether the host may have edited files since the last look that
// a running sandbox does not see: in a kernel overlay those that were replaced, made
// or removed, which changes their directory; in a copy any.
func (t *Tree) MayHaveEdits() (bool, error) {
	if t.Kind == Copy {
		return true, nil
	}
	since := t.Since
	if info, err := os.Stat(filepath.Join(t.Dir, followedName)); err == nil && info.ModTime().After(since) {
		since = info.ModTime()
	}
	root, err := t.openBase()
	if err != nil {
		return false, err
	}
	defer root.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		return false, err
	}
	return n.dirChanged(root, since.Add(-tick).UnixNano()), nil
}

// dirChanged reports whether a noted directory, or where one was, has changed since.
func (n *notes) dirChanged(root *os.File, since int64) bool {
	for dir := range n.base.dirs {
		if line, ok := n.applied[dir]; ok && line.Entry == nil {
			continue
		}
		var st unix.Stat_t
		if dir == "" {
			dir = "."
		}
		if unix.Fstatat(int(root.Fd()), dir, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Ctim.Nano() >= since {
			return true
		}
	}
	for dir, line := range n.applied {
		var st unix.Stat_t
		if line.ID != nil && (unix.Fstatat(int(root.Fd()), dir, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Ctim.Nano() >= since) {
			return true
		}
	}
	return false
}
