package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// baseDir is the open directory of the host that changes are applied to.
type baseDir struct{ root *os.File }

func (g *Gate) openBase() (*baseDir, error) {
	fd, err := unix.Open(g.opt.Base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if isGone(err) {
		return nil, fmt.Errorf("%w: %s: %w", overlay.ErrBaseGone, g.opt.Base, err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", g.opt.Base, err)
	}
	return &baseDir{os.NewFile(uintptr(fd), g.opt.Base)}, nil
}

func (b *baseDir) close() { _ = b.root.Close() }

// parent opens the directory of a path below the base. It passes no symbolic link
// and enters no other mount.
func (b *baseDir) parent(rel string) (*os.File, string, error) {
	dir, leaf := path.Split(rel)
	if !filepath.IsLocal(rel) || leaf == "" || leaf == "." || leaf == ".." {
		return nil, "", fmt.Errorf("%q: %w", rel, hostpath.ErrEscapes)
	}
	dir = path.Clean(dir)
	fd, err := openat2(b.root, dir)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return b.parentWalking(dir, leaf)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%q: %w", dir, err)
	}
	return os.NewFile(uintptr(fd), dir), leaf, nil
}

func openat2(root *os.File, dir string) (int, error) {
	const attempts = 64
	for attempt := 0; ; attempt++ {
		fd, err := unix.Openat2(int(root.Fd()), dir, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
		})
		again := errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
		if !again || attempt == attempts {
			return fd, err
		}
	}
}

// parentWalking is parent for kernels and containers without openat2.
func (b *baseDir) parentWalking(dir, leaf string) (*os.File, string, error) {
	opened, err := hostpath.OpenBeneath(b.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, "", err
	}
	var root, found unix.Stat_t
	if err := errors.Join(unix.Fstat(int(b.root.Fd()), &root), unix.Fstat(int(opened.Fd()), &found)); err != nil || root.Dev != found.Dev {
		return nil, "", errors.Join(fmt.Errorf("%q: %w", dir, hostpath.ErrEscapes), err, opened.Close())
	}
	return opened, leaf, nil
}

// errSpecial means that a path of the base is no file, link or directory.
var errSpecial = errors.New("is no regular file, symbolic link or directory")

// look returns what a name of a directory is, with the hash of a file; nil if there
// is nothing.
func look(dir *os.File, name string) (*content, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	c := contentOf(&st)
	switch c.Type {
	case typeDir:
	case typeLink:
		c.Link, err = readLink(dir, name)
	case typeFile:
		c.SHA256, err = hashFile(dir, name, &st)
	default:
		err = errSpecial
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return c, nil
}

func contentOf(st *unix.Stat_t) *content {
	types := map[uint32]fileType{unix.S_IFREG: typeFile, unix.S_IFLNK: typeLink, unix.S_IFDIR: typeDir}
	return &content{
		Type: types[st.Mode&unix.S_IFMT], Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid, ID: inode{st.Dev, st.Ino},
		Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
	}
}

func readLink(dir *os.File, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, text)
	return string(text[:max(n, 0)]), err
}

// openFile opens a regular file for reading; nothing else is waited for.
func openFile(dir *os.File, name string) (*os.File, *unix.Stat_t, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, nil, errors.Join(err, hostpath.ErrNotRegular, file.Close())
	}
	return file, &st, nil
}

// hashFile hashes a file that must be the one that was looked at.
func hashFile(dir *os.File, name string, looked *unix.Stat_t) (string, error) {
	file, st, err := openFile(dir, name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if st.Ino != looked.Ino || st.Dev != looked.Dev {
		return "", hostpath.ErrChanged
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// same reports whether nothing happened to a file. A rename of it changes its ctime,
// and nothing else.
func (c *content) same(other *content, renamed bool) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Type == other.Type && c.Mode == other.Mode && c.ID == other.ID && c.SHA256 == other.SHA256 && c.Link == other.Link &&
		c.UID == other.UID && c.GID == other.GID && (c.Type == typeDir || c.Size == other.Size && c.Mtime == other.Mtime) &&
		(renamed || c.Type == typeDir || c.Ctime == other.Ctime)
}
