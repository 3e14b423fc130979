package overlay

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// readChunk is how many names are read from a directory at once.
const readChunk = 4096

// errTooMany means that a tree has more entries than a walk may look at.
var errTooMany = errors.New("there are too many files")

func statAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func openDirAt(parent *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// linkAt reads the text of a symbolic link.
func linkAt(dir *os.File, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, text)
	if err != nil {
		return "", err
	}
	return string(text[:n]), nil
}

// openFileAt opens a regular file, and nothing else, for reading.
func openFileAt(dir *os.File, name string) (*os.File, error) {
	st, err := statAt(dir, name)
	if err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, hostpath.ErrNotRegular
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.Join(err, hostpath.ErrNotRegular, file.Close())
	}
	return file, nil
}

// sortedNames reads all names of a directory, at most limit.
func sortedNames(dir *os.File, limit int) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var names []string
	for {
		some, err := dir.Readdirnames(readChunk)
		names = append(names, some...)
		if len(names) > limit {
			return nil, errTooMany
		}
		if errors.Is(err, io.EOF) || err == nil && len(some) == 0 {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fileMode returns the mode of stat(2) in the form of package fs.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, is := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= is
		}
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	default:
		m |= fs.ModeDevice
	}
	return m
}

// closeFile closes a file that was only read; nil is no error.
func closeFile(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
