package hostpath

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The bounds of a look for sockets below a directory.
const (
	MaxSocketEntries = 20_000 // files and directories looked at
	MaxSocketDepth   = 32     // directories below each other
	maxSocketsNamed  = 8
)

// SocketsBelow returns sockets below a directory on which a program of this host
// waits for connections, wherever it was given their name. Sockets that nobody
// waits on, and those of sandboxes, which have a network of their own, are not
// among them. All of the tree is looked at, up to the bounds: complete is false
// if something lies beyond, where only sockets are found that are known by the
// path they were made with. A kernel that does not tell who waits makes every
// socket count.
func (Disk) SocketsBelow(dir string) (found []string, complete bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, true // there is nothing yet
	}
	waiting, err := waitingSockets()
	look := &socketLook{waiting: waiting, any: err != nil, left: MaxSocketEntries, found: namedBelow(dir, waiting)}
	look.walk(dir, 0)
	slices.Sort(look.found)
	look.found = slices.Compact(look.found)
	return look.found[:min(len(look.found), maxSocketsNamed)], !look.cut
}

// NamedSocketsBelow returns the sockets below a directory that are known by the
// path they were made with. It costs the same however large the directory is.
func (Disk) NamedSocketsBelow(dir string) []string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	waiting, err := waitingSockets()
	if err != nil {
		return nil
	}
	found := namedBelow(dir, waiting)
	return found[:min(len(found), maxSocketsNamed)]
}

// namedBelow returns the sockets whose own path leads below a directory.
func namedBelow(dir string, waiting []waitingSocket) (found []string) {
	for _, s := range waiting {
		if !strings.HasPrefix(s.name, "/") {
			continue
		}
		path, err := filepath.EvalSymlinks(s.name)
		if err != nil || path != dir && !strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && s.is(&st) {
			found = append(found, path)
		}
	}
	return found
}

// socketLook is one look at a tree.
type socketLook struct {
	waiting []waitingSocket
	any     bool // every socket counts
	left    int
	cut     bool
	found   []string
}

// walk looks at a directory and those below it. What cannot be read, this user
// could not connect to either.
func (l *socketLook) walk(dir string, depth int) {
	if depth > MaxSocketDepth {
		l.cut = true
		return
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), dir)
	var below []string
	for !l.cut {
		entries, err := f.ReadDir(min(l.left, 1024) + 1)
		if l.left -= len(entries); l.left < 0 {
			l.cut = true
		}
		for _, entry := range entries {
			switch path := filepath.Join(dir, entry.Name()); {
			case entry.IsDir():
				below = append(below, path)
			case entry.Type()&os.ModeSocket != 0:
				l.consider(path)
			}
		}
		if err != nil {
			break
		}
	}
	_ = f.Close()
	for _, path := range below {
		if l.cut {
			return
		}
		l.walk(path, depth+1)
	}
}

// consider adds a socket that somebody waits on.
func (l *socketLook) consider(path string) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return
	}
	if l.any || slices.ContainsFunc(l.waiting, func(s waitingSocket) bool { return s.is(&st) }) {
		l.found = append(l.found, path)
	}
}
