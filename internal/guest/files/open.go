package files

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// confined are the flags by which paths beneath a root are resolved: no link of any
// kind is followed, and no path leads up or onto another mount.
const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// directory are the flags by which a directory is held open: for resolving names in
// it, not for reading it.
const directory = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

func haveOpenat2() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: directory | unix.O_CLOEXEC})
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// dir is a directory beneath a root, held open: it stays the directory that was
// checked, even if its name is changed.
type dir struct {
	files *Server
	fd    int
}

// close closes the descriptor while a slot is held; release, while none is.
func (d *dir) close()   { unix.Close(d.fd) }
func (d *dir) release() { d.files.close(d.fd) }

// root opens a root. It must be a directory, reached without links, and not on a file
// system of the kernel: /proc shows the guest more of itself than other processes see.
func (g *Server) root(name string) (*dir, error) {
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

// refuseKernel refuses files on proc, sysfs and cgroup file systems.
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

func (g *Server) openRoot(name string) (int, error) {
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

// stepInto opens a directory by its name in another. It fails with ELOOP if the name
// is a symbolic link.
func stepInto(fd int, name string) (int, error) {
	below, err := unix.Openat(fd, name, directory|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		if info, lookErr := statAt(fd, name); lookErr == nil && info.kind() == wire.KindSymlink {
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
		case unix.EAGAIN, unix.EINTR: // a directory was renamed during the lookup
			continue
		}
		return fd, err
	}
	return -1, unix.EBUSY
}

// openWalking is open without openat2: it opens one name after the other and checks
// that each is on the same mount.
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

// mountOf returns the id of the mount that an open file is on.
func mountOf(fd int) (uint64, error) {
	info, err := statAt(fd, "")
	switch {
	case err != nil:
		return 0, err
	case info.mountIDIsUnknown:
		return mountFromProc(fd)
	}
	return info.mountID, nil
}

// mountFromProc is mountOf for kernels without STATX_MNT_ID.
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

// openDirError returns why rel could not be opened as a directory. It examines the
// file for a better answer than ENOTDIR.
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
	if info, lookErr := statAt(fd, name); lookErr == nil && info.refuseOddDirectory() != nil {
		return info.refuseOddDirectory()
	}
	return fileError(err)
}
