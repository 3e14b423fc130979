package rootfs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// withMountPoints adds the places of id's mounts to the entries of a generated
// layer. A place whose way leads through a link is refused: a directory in the
// link's place would hide what programs find behind it.
func withMountPoints(entries []entry, id Identity, isLink func(string) bool) ([]entry, error) {
	m := &mountPoints{entries: entries, kinds: map[string]fs.FileMode{}, isLink: isLink}
	for _, e := range entries {
		m.kinds[e.path] = e.mode.Type()
	}
	// Sorted, so that equal sets of mounts are one layer.
	for _, target := range slices.Sorted(slices.Values(id.Dirs)) {
		if err := m.add(target, fs.ModeDir); err != nil {
			return nil, err
		}
	}
	for _, target := range slices.Sorted(slices.Values(id.Files)) {
		if err := m.add(target, 0); err != nil {
			return nil, err
		}
	}
	return m.entries, nil
}

type mountPoints struct {
	entries []entry
	kinds   map[string]fs.FileMode
	isLink  func(string) bool // in the layers below; nil if there are none
}

func (m *mountPoints) add(target string, kind fs.FileMode) error {
	if !path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return fmt.Errorf("mount point %q: %w", target, ErrBadName)
	}
	name := strings.TrimPrefix(path.Clean(target), "/")
	if name == "" {
		return nil
	}
	for at, rest := range split(name) {
		want := fs.ModeDir
		if rest == "" {
			want = kind
		}
		if err := m.place(at, want); err != nil {
			return fmt.Errorf("mount point %q: %w", target, err)
		}
	}
	return nil
}

func (m *mountPoints) place(name string, want fs.FileMode) error {
	have, known := m.kinds[name]
	switch {
	case known && have == fs.ModeSymlink, !known && m.isLink != nil && m.isLink(name):
		return fmt.Errorf("/%s %w", name, ErrLinked)
	case known && have != want:
		return fmt.Errorf("/%s %w", name, ErrConflict)
	case known:
		return nil
	}
	m.kinds[name] = want
	if want == fs.ModeDir {
		m.entries = append(m.entries, dir(name))
	} else {
		m.entries = append(m.entries, file(name, ""))
	}
	return nil
}

// split yields each directory of a path and what comes after it.
func split(name string) func(yield func(at, rest string) bool) {
	return func(yield func(string, string) bool) {
		for i := range len(name) {
			if name[i] == '/' && !yield(name[:i], name[i+1:]) {
				return
			}
		}
		yield(name, "")
	}
}

// isLink tells whether a path is a symbolic link in layers laid over each other.
func (s *Store) isLink(layers []layerName, name string) bool {
	for _, l := range layers {
		root, err := os.OpenRoot(filepath.Join(s.layer(l), layerFiles))
		if err != nil {
			continue
		}
		info, err := root.Lstat(name)
		_ = root.Close()
		if err == nil {
			return info.Mode()&fs.ModeSymlink != 0
		}
	}
	return false
}
