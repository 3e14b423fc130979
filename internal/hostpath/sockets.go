package hostpath

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
	look := &socketSearch{waiting: waiting, any: err != nil, found: namedBelow(dir, waiting)}
	complete = walkBelow(dir, look.consider)
	slices.Sort(look.found)
	look.found = slices.Compact(look.found)
	return look.found[:min(len(look.found), maxNamed)], complete
}

// NamedSocketsBelow returns the sockets below a directory that are known by the
// path they were made with. The tree is looked at, up to the bounds, only for
// sockets whose path does not tell where they are.
func (Disk) NamedSocketsBelow(dir string) []string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	waiting, err := waitingSockets()
	if err != nil {
		return nil
	}
	look := &socketSearch{waiting: withoutPlace(waiting), found: namedBelow(dir, waiting)}
	if len(look.waiting) > 0 {
		walkBelow(dir, look.consider)
	}
	slices.Sort(look.found)
	look.found = slices.Compact(look.found)
	return look.found[:min(len(look.found), maxNamed)]
}

// withoutPlace returns the sockets that were made with a path relative to a
// directory, or whose file has a second name.
func withoutPlace(waiting []waitingSocket) []waitingSocket {
	return slices.DeleteFunc(slices.Clone(waiting), func(s waitingSocket) bool {
		var st unix.Stat_t
		return strings.HasPrefix(s.name, "/") && unix.Lstat(s.name, &st) == nil && st.Nlink == 1
	})
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

// socketSearch looks for sockets that a process listens on.
type socketSearch struct {
	waiting []waitingSocket
	any     bool // every socket counts
	found   []string
}

// consider adds a socket that a process listens on.
func (l *socketSearch) consider(path string, entry os.DirEntry) {
	var st unix.Stat_t
	if entry.Type()&os.ModeSocket == 0 || unix.Lstat(path, &st) != nil {
		return
	}
	if l.any || slices.ContainsFunc(l.waiting, func(s waitingSocket) bool { return s.is(&st) }) {
		l.found = append(l.found, path)
	}
}
