package hostpath

import (
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Kind is what sort of file a path names.
type Kind string

// The kinds of file.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindSymlink   Kind = "symlink"
	KindFIFO      Kind = "fifo"
	KindSocket    Kind = "socket"
	KindDevice    Kind = "device"
	KindUnknown   Kind = "unknown"
)

// Facts are what was true of one path at one moment. All but the two paths come
// from a single descriptor, so they never mix two files.
type Facts struct {
	Path string // as asked for
	// Canonical names the same place without any symbolic link. What does not
	// exist yet hangs below its deepest existing ancestor.
	Canonical string
	Exists    bool

	// Set only if the path exists; the links of the path are followed.
	Kind   Kind
	Mode   fs.FileMode // permission bits only
	UID    uint32
	GID    uint32
	Links  uint64
	Size   int64
	Device uint64
	Inode  uint64
}

// ID identifies a file while it exists, whatever its name.
type ID struct{ Device, Inode uint64 }

// ID returns the identity of the file; the zero ID if there is none.
func (f Facts) ID() ID { return ID{f.Device, f.Inode} }

// Owner is the form that docker.user takes for the owner: "uid:gid".
func (f Facts) Owner() string { return fmt.Sprintf("%d:%d", f.UID, f.GID) }

// WritableBy reports whether the permission bits let a user create files in this
// directory, or change this file. Access control lists are not considered.
func (f Facts) WritableBy(uid uint32, gids ...uint32) bool {
	want := fs.FileMode(0o2)
	if f.Kind == KindDirectory {
		want = 0o3
	}
	switch {
	case !f.Exists:
		return false
	case uid == 0:
		return true
	case uid == f.UID:
		return f.Mode>>6&want == want
	case slices.Contains(gids, f.GID):
		return f.Mode>>3&want == want
	}
	return f.Mode&want == want
}

// stat fills in what a descriptor tells.
func (f *Facts) stat(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	f.fill(&st)
	return nil
}

// fill takes what the kernel told.
func (f *Facts) fill(st *unix.Stat_t) {
	f.Exists = true
	f.Kind = KindOf(st.Mode)
	f.Mode = fs.FileMode(st.Mode & 0o7777)
	f.UID, f.GID = st.Uid, st.Gid
	f.Links, f.Size = uint64(st.Nlink), st.Size
	f.Device, f.Inode = uint64(st.Dev), st.Ino
}

// KindOf tells the kind from the mode that stat(2) gives.
func KindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return KindFile
	case unix.S_IFDIR:
		return KindDirectory
	case unix.S_IFLNK:
		return KindSymlink
	case unix.S_IFIFO:
		return KindFIFO
	case unix.S_IFSOCK:
		return KindSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return KindDevice
	}
	return KindUnknown
}
