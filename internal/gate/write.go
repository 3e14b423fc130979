package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// errStage means that a staged or kept file is not what its hash says.
var errStage = errors.New("a staged file is damaged")

// writeNew makes the new file of a step under a temporary name, complete and on
// disk, and returns which file it is.
func (g *Gate) writeNew(dir *os.File, temp string, s *step) (id inode, err error) {
	if s.After.Type == typeLink {
		err = unix.Symlinkat(s.After.Link, int(dir.Fd()), temp)
	} else {
		err = g.writeFile(dir, temp, s)
	}
	if err != nil {
		return id, err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return id, err
	}
	if s.After.Type == typeLink {
		err = ignoreEPERM(unix.Fchownat(int(dir.Fd()), temp, int(s.After.UID), int(s.After.GID), unix.AT_SYMLINK_NOFOLLOW))
	}
	return inode{st.Dev, st.Ino}, err
}

// writeFile writes a regular file. Its attributes come from the step, and for a kept
// file from that; nothing comes from the sandbox.
func (g *Gate) writeFile(dir *os.File, temp string, s *step) error {
	source, err := os.Open(g.sourcePath(s))
	if err != nil {
		return err
	}
	defer source.Close()
	fd, err := unix.Openat(int(dir.Fd()), temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	err = copyHashed(file, source, s.After.SHA256)
	if err == nil {
		err = ignoreEPERM(unix.Fchown(fd, int(s.After.UID), int(s.After.GID)))
	}
	if err == nil {
		err = unix.Fchmod(fd, s.After.Mode)
	}
	if err == nil && s.From != "" {
		err = copyAttributes(file, source, s.After.Mtime)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (g *Gate) sourcePath(s *step) string {
	if s.From == "" {
		return g.stagePath(s.After.SHA256)
	}
	id, n, _ := strings.Cut(s.From, "/")
	return g.undoDir(id) + "/" + n
}

func copyHashed(to io.Writer, from io.Reader, sum string) error {
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, hash), from); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%w: %.12s", errStage, sum)
	}
	return nil
}

// ignoreEPERM drops the error of chown for an ordinary user, who owns the file already.
func ignoreEPERM(err error) error {
	if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		return nil
	}
	return err
}

// copyAttributes gives a file the extended attributes of another, and a time.
func copyAttributes(to, from *os.File, mtime int64) error {
	names, err := attributeNames(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := attribute(from, name)
		if err != nil {
			return err
		}
		if has, err := attribute(to, name); err == nil && string(has) == string(value) {
			continue
		}
		if err := unix.Fsetxattr(int(to.Fd()), name, value, 0); err != nil {
			return fmt.Errorf("extended attribute %s: %w", name, err)
		}
	}
	return setTime(to, mtime)
}

func setTime(file *os.File, mtime int64) error {
	at := unix.NsecToTimespec(mtime)
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, 0)
}

func attributeNames(file *os.File) ([]string, error) {
	size, err := unix.Flistxattr(int(file.Fd()), nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(int(file.Fd()), list); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(list[:size]), "\x00"), "\x00"), nil
}

func attribute(file *os.File, name string) ([]byte, error) {
	size, err := unix.Fgetxattr(int(file.Fd()), name, nil)
	if err != nil {
		return nil, err
	}
	value := make([]byte, size)
	if size > 0 {
		size, err = unix.Fgetxattr(int(file.Fd()), name, value)
	}
	return value[:max(size, 0)], err
}
