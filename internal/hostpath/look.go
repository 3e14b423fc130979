package hostpath

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The bounds of a look at everything below a directory.
const (
	MaxLookEntries = 20_000 // files and directories looked at
	MaxLookDepth   = 32     // directories below each other
	maxNamed       = 8      // of what was found
)

// walkBelow shows every entry below a directory to see, within the bounds. It
// follows no link. What cannot be read is left out: the user of this process
// could not use it either.
func walkBelow(dir string, see func(path string, entry os.DirEntry)) (complete bool) {
	l := &boundedWalk{left: MaxLookEntries, see: see}
	l.walk(dir, 0)
	return !l.cut
}

// boundedWalk is one look at a tree.
type boundedWalk struct {
	left int
	cut  bool // something was not looked at
	see  func(path string, entry os.DirEntry)
}

func (l *boundedWalk) walk(dir string, depth int) {
	if depth > MaxLookDepth {
		l.cut = true
		return
	}
	for _, path := range l.list(dir) {
		if l.cut {
			return
		}
		l.walk(path, depth+1)
	}
}

// list shows the entries of a directory, and returns the directories among them.
func (l *boundedWalk) list(dir string) (below []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	for !l.cut {
		const atOnce = 1024
		entries, err := f.ReadDir(min(l.left, atOnce) + 1)
		if l.left -= len(entries); l.left < 0 {
			l.cut = true
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if entry.IsDir() {
				below = append(below, path)
			}
			l.see(path, entry)
		}
		if err != nil {
			break
		}
	}
	return below
}
