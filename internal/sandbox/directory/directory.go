// Package directory finds the directory that a command is about, the top level of
// a repository or the working directory itself, and records an id for it. The id
// stays when the directory is moved or renamed. Nothing is written to the directory.
package directory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Directory is a recorded directory.
type Directory struct {
	ID     string `json:"id"`
	Path   string `json:"path"` // canonical
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born,omitzero"`  // creation time in nanoseconds; 0 where the file system has none
	Image  string `json:"image,omitzero"` // of the sandbox that was used last
	// Sub is the working directory below Path, "." for Path itself.
	Sub string `json:"-"`
	// Moved is the path at which the directory was used before; "" if it was this one.
	Moved string `json:"-"`
}

// maxLevels bounds how many directories above the working directory are looked at.
const maxLevels = 256

// Locate returns the directory that cwd belongs to, without an id: the top level of
// the repository, or cwd itself where there is none. The root of the file system and
// homes are refused: a sandbox there would show everything.
func Locate(cwd string, homes []string) (*Directory, error) {
	cwd, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	top := topLevel(cwd, homes)
	if top == "/" || slices.Contains(homes, top) {
		return nil, errhint.With(fmt.Errorf("%s is no project: a sandbox of it would show all of your files", top), "change to the directory of a project")
	}
	sub, err := filepath.Rel(top, cwd)
	if err != nil {
		return nil, err
	}
	d := &Directory{Path: top, Sub: sub}
	return d, d.identify()
}

// topLevel is the nearest directory at or above cwd with a .git, which belongs to
// the owner of cwd, to this user or to root; cwd if there is none. A home is no
// repository for what lies below it.
func topLevel(cwd string, homes []string) string {
	owner, _ := ownerOf(cwd)
	for at, level := cwd, 0; at != "/" && level < maxLevels; at, level = filepath.Dir(at), level+1 {
		if slices.Contains(homes, at) {
			break
		}
		uid, ok := ownerOf(filepath.Join(at, ".git"))
		if ok && (uid == owner || uid == 0 || int(uid) == os.Geteuid()) {
			return at
		}
	}
	return cwd
}

func ownerOf(path string) (uid uint32, ok bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0, false
	}
	return st.Uid, true
}

// IsRepository reports whether the directory is the top level of a repository.
func (d *Directory) IsRepository() bool {
	_, err := os.Lstat(filepath.Join(d.Path, ".git"))
	return err == nil
}

// identify notes what tells the directory from others.
func (d *Directory) identify() error {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, d.Path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_TYPE|unix.STATX_BTIME, &st)
	if err != nil {
		return &os.PathError{Op: "statx", Path: d.Path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return errors.New(d.Path + " is no directory")
	}
	d.Device, d.Inode, d.Born = unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, 0
	if st.Mask&unix.STATX_BTIME != 0 {
		d.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return nil
}

// is reports whether a record is of this directory: the same inode, made at the same
// moment, and at the same path or on the same device. Device numbers can change
// when a machine starts again.
func (d *Directory) is(recorded *Directory) bool {
	return d.Inode == recorded.Inode && d.Born == recorded.Born && (d.Path == recorded.Path || d.Device == recorded.Device)
}
