package quota

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Measure counts bytes and files. Processes, unless nil, lists the processes whose open
// files without a name are counted too.
func (r *Limits) Measure(processes func(func(pid int))) Usage {
	m := &meter{limits: r, nameless: map[inode]bool{}}
	for _, dir := range r.Dirs {
		m.place = place{dir, r.Merged[dir]}
		m.tree(dir)
		m.mergedDevice()
	}
	if processes != nil {
		processes(m.descriptors)
	}
	m.Free = r.Disks().Free
	return m.Usage
}

// place is a directory that is measured, and where its files can be changed: in
// itself, or, if it is the upper directory of an overlay, in the merged one.
type place struct{ dir, merged string }

// writable returns where a path below the directory can be changed.
func (p place) writable(path string) string {
	if p.merged == "" {
		return path
	}
	return p.merged + strings.TrimPrefix(path, p.dir)
}

// mergedDevice notes the device that files without a name have in an overlay.
func (m *meter) mergedDevice() {
	var st unix.Stat_t
	if m.merged != "" && unix.Lstat(m.merged, &st) == nil {
		m.devices = append(m.devices, st.Dev)
	}
}

// meter is one measurement.
type meter struct {
	Usage
	place
	limits   *Limits
	devices  []uint64
	nameless map[inode]bool
	buf      [16 << 10]byte
}

type inode struct{ device, number uint64 }

// level is a directory that is being read. It is not held open: directories may be nested
// deeper than there are descriptors.
type level struct {
	path    string
	offset  int64    // where reading goes on
	pending []string // its directories that were not read yet
	read    bool     // it was read to its end
}

// tree counts a directory and everything below it on the same disk.
func (m *meter) tree(dir string) {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil {
		return
	}
	m.devices = append(m.devices, st.Dev)
	for levels := []level{{path: dir}}; len(levels) > 0 && !m.enough(); {
		last := &levels[len(levels)-1]
		switch n := len(last.pending); {
		case n > 0:
			next := level{path: last.path + "/" + last.pending[n-1]}
			last.pending = last.pending[:n-1]
			levels = append(levels, next)
		case last.read:
			levels = levels[:len(levels)-1]
		default:
			m.readSome(last, st.Dev)
		}
	}
}

// mostCounted bounds a measurement without a limit of files: reading a directory whose
// names change all the time may never end.
const mostCounted = 1 << 26

// enough reports whether counting can stop: beyond twice a limit the exact figure does
// not matter.
func (m *meter) enough() bool {
	m.Endless = m.Endless || m.Files >= mostCounted
	m.Partial = m.Endless || m.limits.Files > 0 && m.Files > 2*m.limits.Files || m.limits.Size > 0 && m.Bytes > 2*m.limits.Size
	return m.Partial
}

// readSome counts the files of one read of a directory.
func (m *meter) readSome(l *level, device uint64) {
	fd, err := m.openLockable(l.path)
	if err != nil {
		// A path longer than the kernel allows, or locked again at once, hides files.
		l.read, m.Endless = true, m.Endless || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, errLockedDir)
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Seek(fd, l.offset, unix.SEEK_SET)
	n, err := unix.ReadDirent(fd, m.buf[:])
	if err != nil || n <= 0 {
		l.read = !errors.Is(err, unix.EINTR)
		return
	}
	_, _, names := unix.ParseDirent(m.buf[:n], -1, nil)
	for _, name := range names {
		if m.count(l, fd, name, device) {
			l.pending = append(l.pending, name)
		}
	}
	l.offset, err = unix.Seek(fd, 0, unix.SEEK_CUR)
	l.read = err != nil
}

// count adds one file, and reports whether it is a directory to read. Each name of a file
// with several links counts its share.
func (m *meter) count(l *level, dir int, name string, device uint64) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	for try := 0; err == unix.EACCES && try < lockTries; try++ { // it was closed since we opened it
		_ = unlock(m.writable(l.path))
		err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil || st.Dev != device {
		m.Endless = m.Endless || err == unix.EACCES
		return false
	}
	m.Files++
	if isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; isDir {
		m.Bytes += st.Blocks * blockSize
		return true
	}
	m.Bytes += st.Blocks * blockSize / int64(max(st.Nlink, 1))
	return false
}

// blockSize is the unit of st_blocks.
const blockSize = 512

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// lockTries is how often a directory is opened that code inside closes again.
const lockTries = 100

// openLockable opens a directory that is closed now and then, it or one above it:
// code inside may do so at any moment, also between two of our system calls. One
// that is closed at every try is errLockedDir.
func (p place) openLockable(path string) (fd int, err error) {
	for range lockTries {
		if fd, err = p.openDir(path); !errors.Is(err, errLockedDir) {
			return fd, err
		}
		above := p.writable(path)
		for n := range above {
			if n > 0 && above[n] == '/' {
				_ = unlock(above[:n])
			}
		}
	}
	return -1, err
}

// openDir opens a directory for reading. If its mode denies that to its owner, the
// guest's own user, it adds the owner's permissions.
func (p place) openDir(path string) (int, error) {
	fd, err := unix.Open(path, dirFlags, 0)
	if err == nil {
		if unix.Faccessat(fd, ".", unix.X_OK, 0) != unix.EACCES {
			return fd, nil
		}
		unix.Close(fd)
	} else if err != unix.EACCES {
		return -1, err
	}
	if err := unlock(p.writable(path)); err != nil {
		return -1, err
	}
	if fd, err = unix.Open(path, dirFlags, 0); err == unix.EACCES {
		err = errLockedDir
	}
	return fd, err
}

// errLockedDir is a directory whose mode was changed again before it was opened.
var errLockedDir = errors.New("a directory is kept from us")

// unlock adds the owner's permissions to a directory.
func unlock(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.EACCES {
		return errLockedDir // the mode of a directory above it was changed
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unlockFD(fd)
}

// unlockFD does it for a directory that is open, also with O_PATH.
func unlockFD(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o700 == 0o700 {
		return nil
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o1777|0o700) // fails if it is another user's
}

// maxNameless bounds how many files without a name are counted.
const maxNameless = 1 << 14

// descriptors adds the files without a name that a process holds.
func (m *meter) descriptors(pid int) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), name, &st, 0) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		m.addNameless(&st)
	}
}

func (m *meter) addNameless(st *unix.Stat_t) {
	id := inode{st.Dev, st.Ino}
	for _, device := range m.devices {
		if device == st.Dev && !m.nameless[id] && len(m.nameless) < maxNameless {
			m.nameless[id] = true
			m.Bytes += st.Blocks * blockSize
			m.Files++
			return
		}
	}
}
