package hostpath

import (
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// NoLimit is the limit of a file that may have any size.
const NoLimit int64 = -1

// OpenDir opens a directory to be the root of the functions below. Links in its
// own path are followed: it is the caller's choice, not an attacker's.
func OpenDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refuse(path, reasonOf(err))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenBeneath opens rel below root with the flags of open(2). No symbolic link
// is followed, not even one that stays inside.
func OpenBeneath(root *os.File, rel string, flags int) (*os.File, error) {
	fd, err := openUnder(root, rel, open{flags: flags})
	if err != nil {
		return nil, refuse(rel, reasonOf(err))
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// IdentifyBeneath examines rel below root. Symbolic links are refused.
func IdentifyBeneath(root *os.File, rel string) (Facts, error) {
	facts, err := lookUnder(root, rel)
	if err != nil {
		return Facts{}, refuse(rel, reasonOf(err))
	}
	return facts, nil
}

// OpenRegularBeneath opens a regular file below root for reading: one that has
// a single name, passes through no link, and is at most limit bytes long now.
// Nothing but a regular file is ever opened, so no pipe can block the caller
// and no device can be woken.
func OpenRegularBeneath(root *os.File, rel string, limit int64) (*os.File, error) {
	for range maxAttempts {
		fd, err := openRegularOnce(root, rel, limit)
		if err == nil {
			return os.NewFile(uintptr(fd), rel), nil
		}
		if !errors.Is(err, errRace) {
			return nil, refuse(rel, reasonOf(err))
		}
	}
	return nil, refuse(rel, ErrChanged)
}

func openRegularOnce(root *os.File, rel string, limit int64) (int, error) {
	before, err := lookUnder(root, rel)
	if err != nil {
		return -1, err
	}
	if err := before.regular(limit); err != nil {
		return -1, err
	}
	// Non-blocking in case it became a pipe since; the second look refuses that.
	fd, err := openUnder(root, rel, open{flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY})
	if err != nil {
		return -1, err
	}
	if err := confirmRegular(fd, limit); err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// confirmRegular looks again, now at what was really opened.
func confirmRegular(fd int, limit int64) error {
	var now Facts
	if err := errors.Join(now.stat(fd), unix.SetNonblock(fd, false)); err != nil {
		return err
	}
	return now.regular(limit)
}

func openUnder(root *os.File, rel string, how open) (int, error) {
	defer runtime.KeepAlive(root)
	return openConfined(int(root.Fd()), rel, how)
}

func lookUnder(root *os.File, rel string) (Facts, error) {
	facts := Facts{Path: rel, Canonical: rel}
	fd, err := openUnder(root, rel, open{flags: unix.O_PATH})
	if err != nil {
		return Facts{}, err
	}
	defer closeFD(fd)
	return facts, facts.stat(fd)
}

// ReadRegularBeneath reads a file that OpenRegularBeneath would open. A file
// that grows beyond limit while it is read is refused.
func ReadRegularBeneath(root *os.File, rel string, limit int64) ([]byte, error) {
	file, err := OpenRegularBeneath(root, rel, limit)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(limited(file, limit))
	if err != nil {
		return nil, refuse(rel, err)
	}
	return data, nil
}

// regular refuses by name everything but a plain file with one name.
func (f Facts) regular(limit int64) error {
	switch f.Kind {
	case KindFile:
	case KindDirectory:
		return ErrDirectory
	case KindSymlink:
		return ErrSymlink
	case KindFIFO:
		return ErrFIFO
	case KindSocket:
		return ErrSocket
	case KindDevice:
		return ErrDevice
	default:
		return ErrNotRegular
	}
	switch {
	case f.Links == 0:
		return errRace // unlinked between its opening and now
	case f.Links > 1:
		return ErrHardLink
	case limit >= 0 && f.Size > limit:
		return ErrTooLarge
	}
	return nil
}

// limited reads from r and fails, instead of ending, beyond limit bytes.
func limited(r io.Reader, limit int64) io.Reader {
	if limit < 0 {
		return r
	}
	return &limitedReader{r, limit}
}

type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		return int(l.left), ErrTooLarge
	}
	l.left -= int64(n)
	return n, err
}
