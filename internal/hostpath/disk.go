package hostpath

import "golang.org/x/sys/unix"

// Disk answers questions about paths of this host. It has no state; it exists
// so that code without access to the disk can be given the answers it needs.
type Disk struct{}

// Canonical returns a path without its links, as Identify does.
func (Disk) Canonical(path string) (string, error) {
	facts, err := Identify(path)
	return facts.Canonical, err
}

// Socket reports whether a path leads to a socket. What cannot be examined is not
// one; Canonical reports why.
func (Disk) Socket(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && KindOf(st.Mode) == KindSocket
}

// Identity returns which file a path leads to, if there is one.
func (Disk) Identity(path string) (device, inode uint64, exists bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}
