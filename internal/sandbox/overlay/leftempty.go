package overlay

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// besideBuild are the files of which one is beside a directory that a build makes, for
// names that other directories have too.
var besideBuild = map[string][]string{"target": {"Cargo.toml", "pom.xml", "build.sbt"}}

// emptyDirs are the names of directories that a copy has without what is in them.
type emptyDirs []string

// has reports whether the directory of a name is one of them.
func (e emptyDirs) has(parent int, name string) bool {
	beside := besideBuild[name]
	return slices.Contains(e, name) && (beside == nil || slices.ContainsFunc(beside, func(file string) bool {
		return unix.Faccessat(parent, file, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil
	}))
}

// leavesEmpty reports whether a copy began without what is in a directory, of which
// parents are the directories that it is in: the copy's, the base's or both. What is
// made in it stays inside.
func (t *Tree) leavesEmpty(name string, parents ...*os.File) bool {
	return t.Kind == Copy && slices.ContainsFunc(parents, func(dir *os.File) bool { return dir != nil && t.Empty.has(int(dir.Fd()), name) })
}

// LeavesEmpty reports whether a copy began without what is in a directory of the base.
func (t *Tree) LeavesEmpty(dir string) bool {
	if t.Kind != Copy || !slices.Contains(t.Empty, filepath.Base(dir)) {
		return false
	}
	parent, err := hostpath.OpenDir(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer parent.Close()
	return t.leavesEmpty(filepath.Base(dir), parent)
}
