package guest

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// confined is how everything beneath a root is resolved: no link of any kind is
// followed, nothing leads up or onto another mount.
const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// directory is how a directory is held: it can be passed through, not read.
const directory = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

func haveOpenat2() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: directory | unix.O_CLOEXEC})
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// dir is a directory beneath a root, held open: whatever happens to its name,
// it stays the one that was checked.
type dir struct {
	files *fileServer
	fd    int
}

// close lets go of the directory while a slot is held; release, while none is.
func (d *dir) close()   { unix.Close(d.fd) }
func (d *dir) release() { d.files.close(d.fd) }

// root opens a root. It must be a real directory, reached without links, and
// must not be a window into the kernel: what the guest may do to itself there,
// nobody else may.
func (g *fileServer) root(name string) (*dir, error) {
	fd, err := g.openRoot(name)
	if err != nil {
		return nil, fileError(err)
	}
	if err := refuseKernel(fd); err != nil {
		unix.Close(fd)
		return nil, fileError(err)
	}
	return &dir{g, fd}, nil
}

// refuseKernel refuses what lies on one of the kernel's own file systems.
func refuseKernel(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return wire.Fail(wire.CodeInvalid, "the root is one of the kernel's own file systems")
	}
	return nil
}

func (g *fileServer) openRoot(name string) (int, error) {
	if g.openat2 {
		return unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{
			Flags: directory | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
	}
	fd, err := unix.Open("/", directory|unix.O_CLOEXEC, 0)
	for element := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		if element == "" || err != nil {
			continue
		}
		above := fd
		fd, err = stepInto(above, element)
		unix.Close(above)
	}
	return fd, err
}

// stepInto opens a directory by its name in another. What is there instead is
// named by the error.
func stepInto(fd int, name string) (int, error) {
	below, err := unix.Openat(fd, name, directory|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		if facts, lookErr := statAt(fd, name); lookErr == nil && facts.kind() == wire.KindSymlink {
			return -1, unix.ELOOP
		}
	}
	return below, err
}

// open opens rel beneath the directory.
func (d *dir) open(rel string, flags int, mode uint32) (int, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if !d.files.openat2 {
		return d.openWalking(rel, flags, mode)
	}
	for range 16 {
		fd, err := unix.Openat2(d.fd, rel, &unix.OpenHow{Flags: uint64(flags), Mode: uint64(mode), Resolve: confined})
		switch err {
		case unix.EAGAIN, unix.EINTR: // something moved while the kernel looked
			continue
		}
		return fd, err
	}
	return -1, unix.EBUSY
}

// openWalking is open without openat2: name by name, each checked not to be on
// another mount.
func (d *dir) openWalking(rel string, flags int, mode uint32) (int, error) {
	home, err := mountOf(d.fd)
	if err != nil {
		return -1, err
	}
	elements := strings.Split(rel, "/")
	fd := d.fd
	for i, element := range elements {
		var below int
		if i < len(elements)-1 {
			below, err = stepInto(fd, element)
		} else {
			below, err = unix.Openat(fd, element, flags, mode)
		}
		if fd != d.fd {
			unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = below
		if mount, err := mountOf(fd); err != nil || mount != home {
			unix.Close(fd)
			return -1, errors.Join(err, unix.EXDEV)
		}
	}
	return fd, nil
}

// mountOf tells which mount an open file is on.
func mountOf(fd int) (uint64, error) {
	facts, err := statAt(fd, "")
	switch {
	case err != nil:
		return 0, err
	case facts.mountIDIsUnknown:
		return mountFromProc(fd)
	}
	return facts.mountID, nil
}

// mountFromProc is mountOf for kernels that say it nowhere else.
func mountFromProc(fd int) (uint64, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, wire.Fail(wire.CodeUnsupported, "this kernel does not tell mounts apart")
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
	}
	return 0, wire.Fail(wire.CodeUnsupported, "this kernel does not tell mounts apart")
}

// descend opens a directory beneath. "." is a second handle on the same one.
func (d *dir) descend(rel string) (*dir, error) {
	fd, err := d.open(rel, directory, 0)
	if err != nil {
		return nil, d.openDirError(rel, err)
	}
	return &dir{d.files, fd}, nil
}

// openDirError finds the reason why something could not be opened as a directory: the
// thing itself says more than the kernel's number.
func (d *dir) openDirError(rel string, err error) error {
	if !errors.Is(err, unix.ENOTDIR) {
		return fileError(err)
	}
	above, name := path.Split(rel)
	fd := d.fd
	if above != "" {
		var openErr error
		if fd, openErr = d.open(strings.TrimSuffix(above, "/"), directory, 0); openErr != nil {
			return fileError(err)
		}
		defer unix.Close(fd)
	}
	if facts, lookErr := statAt(fd, name); lookErr == nil && facts.refuseOddDirectory() != nil {
		return facts.refuseOddDirectory()
	}
	return fileError(err)
}
