package guestfs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// MaxRoots bounds the roots of one Files.
const MaxRoots = 256

// Root is a directory of the sandbox whose files may be reached: the target of
// a mount, by the table of the engine that made the sandbox.
type Root struct {
	Path     string // absolute, such as "/workspace"
	ReadOnly bool
}

// Files are the files of a sandbox beneath certain roots. Paths are absolute
// ones inside the sandbox; the longest root above a path decides. Code in the
// sandbox may change everything at any time; nothing it does leads an operation
// outside the path's root or onto another file system. Symbolic
// links, files with several names, pipes, sockets and devices are refused, each
// with an error of its own (ErrSymlink and so on); so are mounts, unless they
// are roots themselves. Missing, existing and forbidden files are
// fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
//
// Methods are safe for concurrent use. Nil options are the zero ones.
type Files struct {
	machine *machine.Machine
	roots   []Root // the longest first
}

// New returns the files of a machine beneath roots. It sends the guest
// nothing yet.
func New(m *machine.Machine, roots []Root) (*Files, error) {
	if len(roots) > MaxRoots {
		return nil, fmt.Errorf("%w: %d roots are over the limit of %d", machine.ErrInvalid, len(roots), MaxRoots)
	}
	sorted := slices.Clone(roots)
	for i := range sorted {
		root := &sorted[i]
		if !path.IsAbs(root.Path) || len(root.Path) > wire.MaxPath || strings.IndexByte(root.Path, 0) >= 0 {
			return nil, fmt.Errorf("%w: root %q is not an absolute path", machine.ErrInvalid, root.Path)
		}
		root.Path = path.Clean(root.Path)
	}
	slices.SortStableFunc(sorted, func(a, b Root) int { return len(b.Path) - len(a.Path) })
	return &Files{machine: m, roots: sorted}, nil
}

// Roots returns the roots, the longest first.
func (f *Files) Roots() []Root { return slices.Clone(f.roots) }

// resolve finds the root of a path.
func (f *Files) resolve(name string) (wire.RootedPath, error) {
	clean := path.Clean(name)
	switch {
	case !path.IsAbs(name):
		return wire.RootedPath{}, fmt.Errorf("%w: the path is not absolute", machine.ErrInvalid)
	case strings.IndexByte(name, 0) >= 0:
		return wire.RootedPath{}, fmt.Errorf("%w: the path contains a zero byte", machine.ErrInvalid)
	case len(clean) > wire.MaxPath:
		return wire.RootedPath{}, fmt.Errorf("%w: the path is longer than %d bytes", machine.ErrInvalid, wire.MaxPath)
	}
	for _, root := range f.roots {
		if rel, ok := beneath(root.Path, clean); ok {
			return wire.RootedPath{Root: wire.Text(root.Path), Path: wire.Text(rel), ReadOnly: root.ReadOnly}, nil
		}
	}
	return wire.RootedPath{}, machine.ErrOutside
}

// beneath returns name relative to root, if it lies there. Both are clean.
func beneath(root, name string) (string, bool) {
	if name == root {
		return ".", true
	}
	if root != "/" {
		root += "/"
	}
	return strings.CutPrefix(name, root)
}

// operation names what failed, and on what.
func operation(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", what, name, err)
}
