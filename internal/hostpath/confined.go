package hostpath

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// open is how a file is to be opened.
type open struct {
	flags int
	mode  uint32
}

// openConfined opens rel below a directory without passing any symbolic link
// and without leaving the directory. Kernels without openat2, and containers
// that forbid it, get the same guarantee from a walk.
func openConfined(dir int, rel string, how open) (int, error) {
	if !filepath.IsLocal(rel) || strings.ContainsRune(rel, 0) {
		return -1, unix.EXDEV
	}
	fd, err := openat2(dir, rel, how)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return openWalking(dir, rel, how)
	}
	return fd, err
}

func openat2(dir int, rel string, how open) (int, error) {
	for attempt := 0; ; attempt++ {
		fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
			Flags:   uint64(how.flags | unix.O_CLOEXEC),
			Mode:    uint64(how.mode),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		// EAGAIN: something was renamed meanwhile and the kernel cannot tell
		// whether the path stayed inside.
		again := errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
		if !again || attempt == maxAttempts {
			return fd, err
		}
	}
}

// openWalking opens each component by the descriptor of the one before. rel is
// local, so it holds no component that could lead back up.
func openWalking(dir int, rel string, how open) (int, error) {
	at, err := unix.Openat(dir, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { closeFD(at) }()
	parent, leaf := filepath.Split(filepath.Clean(rel))
	for name := range strings.SplitSeq(strings.Trim(parent, "/"), "/") {
		next, err := openStep(at, name)
		if err != nil {
			return -1, err
		}
		closeFD(at)
		at = next
	}
	return openLeaf(at, leaf, how)
}

// openStep opens one directory on the way.
func openStep(dir int, name string) (int, error) {
	if name == "" {
		name = "."
	}
	fd, kind, err := statNoFollow(dir, name)
	if err != nil {
		return -1, err
	}
	if kind == KindDirectory {
		return fd, nil
	}
	closeFD(fd)
	if kind == KindSymlink {
		return -1, unix.ELOOP
	}
	return -1, unix.ENOTDIR
}

func openLeaf(dir int, name string, how open) (int, error) {
	fd, kind, err := statNoFollow(dir, name)
	if err == nil {
		closeFD(fd)
	}
	if kind == KindSymlink && how.flags&unix.O_EXCL == 0 {
		return -1, unix.ELOOP
	}
	fd, err = unix.Openat(dir, name, how.flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, how.mode)
	if err != nil || how.flags&unix.O_PATH == 0 {
		return fd, err
	}
	// O_PATH does not refuse a link that came since; it opens the link itself.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || KindOf(st.Mode) == KindSymlink {
		closeFD(fd)
		return -1, unix.ELOOP
	}
	return fd, nil
}

// statNoFollow opens a name without following it and without any effect on the file.
func statNoFollow(dir int, name string) (int, Kind, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, KindUnknown, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return -1, KindUnknown, err
	}
	return fd, KindOf(st.Mode), nil
}

// closeFD closes a descriptor through which nothing was written, so that there
// is no error to lose.
func closeFD(fd int) { _ = unix.Close(fd) }
