package hostpath

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// TempPrefix begins the name of a file that is being written. One that is left
// over after a crash can be removed.
const TempPrefix = ".atoll-write-"

// WriteOptions say how a file is written. The zero value makes a private file
// that must not exist yet.
type WriteOptions struct {
	Mode    fs.FileMode // 0 means 0600
	Replace bool        // replace what has the name; a link is replaced itself, not what it names
	Owner   *Owner      // nil: the process
	Max     int64       // refuse a longer source; 0 or NoLimit: any length
}

// Owner is a user and group.
type Owner struct{ UID, GID int }

// WriteBeneath writes a file below root so that it appears under its name
// complete or not at all. Its directory must exist. It returns the bytes
// written; fs.ErrExist if the name is taken and may not be replaced.
func WriteBeneath(root *os.File, rel string, src io.Reader, opt WriteOptions) (int64, error) {
	dir, leaf, err := openParent(root, rel)
	if err != nil {
		return 0, refuse(rel, reasonOf(err))
	}
	defer dir.Close()
	temp := TempPrefix + rand.Text()
	n, err := writeTemp(dir, temp, src, opt)
	if err == nil {
		err = publish(dir, temp, leaf, opt.Replace)
	}
	if err != nil {
		_ = unix.Unlinkat(int(dir.Fd()), temp, 0)
		return 0, refuse(rel, reasonOf(err))
	}
	return n, nil
}

// openParent opens the directory of rel.
func openParent(root *os.File, rel string) (*os.File, string, error) {
	parent, leaf := filepath.Split(filepath.Clean(rel))
	if leaf == "." || leaf == ".." || !filepath.IsLocal(rel) {
		return nil, "", unix.EXDEV
	}
	fd, err := openUnder(root, filepath.Clean(parent), open{flags: unix.O_RDONLY | unix.O_DIRECTORY})
	if err != nil {
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), parent), leaf, nil
}

func writeTemp(dir *os.File, name string, src io.Reader, opt WriteOptions) (int64, error) {
	fd, err := openUnder(dir, name, open{flags: unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, mode: 0o600})
	if err != nil {
		return 0, err
	}
	file := os.NewFile(uintptr(fd), name)
	n, err := io.Copy(file, limited(src, opt.max()))
	if err == nil && opt.Owner != nil {
		err = file.Chown(opt.Owner.UID, opt.Owner.GID)
	}
	if err == nil {
		err = file.Chmod(opt.mode())
	}
	if err == nil {
		err = file.Sync()
	}
	return n, errors.Join(err, file.Close())
}

func (o WriteOptions) mode() fs.FileMode {
	if o.Mode == 0 {
		return 0o600
	}
	return o.Mode.Perm()
}

func (o WriteOptions) max() int64 {
	if o.Max == 0 {
		return NoLimit
	}
	return o.Max
}

// publish gives a finished file its name and makes that durable.
func publish(dir *os.File, temp, leaf string, replace bool) error {
	fd := int(dir.Fd())
	if replace {
		if err := unix.Renameat(fd, temp, fd, leaf); err != nil {
			return err
		}
		return dir.Sync()
	}
	err := unix.Renameat2(fd, temp, fd, leaf, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = linkNew(fd, temp, leaf) // file systems that cannot rename exclusively
	}
	if err != nil {
		return err
	}
	return dir.Sync()
}

func linkNew(dir int, temp, leaf string) error {
	if err := unix.Linkat(dir, temp, dir, leaf, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, temp, 0)
}
