package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrNotPrivate means that a directory can be changed by other users.
var ErrNotPrivate = errors.New("is not private")

// MakePrivate checks that a directory belongs to this user and that no other
// user can look into it. A mode that lets others in is changed to 0700 and
// returned; 0 means that nothing had to be changed. A directory of another user,
// or one in which others could leave files and did, is refused. A directory
// that does not exist is no error.
func MakePrivate(dir string) (mended fs.FileMode, err error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.IsDir():
		return 0, refuse(dir, ErrNotDirectory)
	case ownerOf(info) != os.Geteuid():
		return 0, errhint.With(fmt.Errorf("%s %w: it belongs to user %d", dir, ErrNotPrivate, ownerOf(info)), "run as that user, or set ATOLL_STATE_DIR to a directory of your own")
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return 0, nil
	}
	if mode&0o022 != 0 {
		if err := checkOwners(dir); err != nil {
			return 0, err
		}
	}
	return mode, os.Chmod(dir, 0o700)
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// checkOwners refuses a directory that holds files of other users than this
// one and root.
func checkOwners(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && ownerOf(info) != os.Geteuid() && ownerOf(info) != 0 {
			return errhint.With(fmt.Errorf("%s %w: user %d left %s there", dir, ErrNotPrivate, ownerOf(info), entry.Name()),
				"look at "+filepath.Join(dir, entry.Name())+", remove it, and run chmod 700 "+dir)
		}
	}
	return nil
}
