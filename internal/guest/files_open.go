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
	files *filing
	fd    int
}

func (d *dir) close() { unix.Close(d.fd) }

// root opens a root. It must be a real directory, reached without links, and
// must not be a window into the kernel: what the guest may do to itself there,
// nobody else may.
func (g *filing) root(name string) (*dir, error) {
	fd, err := g.openRoot(name)
	if err != nil {
		return nil, fileError(err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		unix.Close(fd)
		return nil, fileError(err)
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		unix.Close(fd)
		return nil, wire.Fail(wire.CodeInvalid, "the root is one of the kernel's own file systems")
	}
	return &dir{g, fd}, nil
}

func (g *filing) openRoot(name string) (int, error) {
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
		if facts, lookErr := lookAt(fd, name); lookErr == nil && facts.kind() == wire.KindSymlink {
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
	facts, err := lookAt(fd, "")
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
		return nil, d.whyNot(rel, err)
	}
	return &dir{d.files, fd}, nil
}

// whyNot finds the reason why something could not be opened as a directory: the
// thing itself says more than the kernel's number.
func (d *dir) whyNot(rel string, err error) error {
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
	if facts, lookErr := lookAt(fd, name); lookErr == nil && facts.refuseOddDirectory() != nil {
		return facts.refuseOddDirectory()
	}
	return fileError(err)
}

// spot is a name in a directory, whether or not there is something. The name
// "." stands for the directory itself, which is then a root.
type spot struct {
	dir  *dir
	name string
}

func (s *spot) close() { s.dir.close() }

// locate opens the directory above a place.
func (g *filing) locate(p *wire.Place) (*spot, error) {
	if err := checkPlace(p); err != nil {
		return nil, err
	}
	root, err := g.root(string(p.Root))
	if err != nil {
		return nil, err
	}
	above, name := path.Split(string(p.Path))
	if above == "" {
		return &spot{root, name}, nil
	}
	defer root.close()
	d, err := root.descend(strings.TrimSuffix(above, "/"))
	if err != nil {
		return nil, err
	}
	return &spot{d, name}, nil
}

// locateToChange is locate for a place that is about to change. It makes the
// directories above it if asked to.
func (g *filing) locateToChange(p *wire.Place, mkdirAll bool) (*spot, error) {
	if p.ReadOnly {
		return nil, refuse(wire.CodeReadOnly)
	}
	if p.Path == "." {
		return nil, wire.Fail(wire.CodeInvalid, "the root itself cannot be changed")
	}
	s, err := g.locate(p)
	if wireErr, ok := errors.AsType[*wire.Error](err); !mkdirAll || !ok || wireErr.Code != wire.CodeFileNotFound {
		return s, err
	}
	root, err := g.root(string(p.Root))
	if err != nil {
		return nil, err
	}
	defer root.close()
	above, name := path.Split(string(p.Path))
	d, err := root.makeAll(strings.TrimSuffix(above, "/"), defaultDirMode)
	if err != nil {
		return nil, err
	}
	return &spot{d, name}, nil
}

// look tells what is there.
func (s *spot) look() (*facts, error) {
	name := s.name
	if name == "." {
		name = ""
	}
	facts, err := lookAt(s.dir.fd, name)
	if err != nil {
		return nil, fileError(err)
	}
	return facts, nil
}

// openRegular opens a regular file for reading. It is looked at first, so that
// no pipe is opened under its writer and no device woken, and again when it is
// open, because it may be another by then.
func (s *spot) openRegular() (int, *facts, error) {
	before, err := s.look()
	if err == nil {
		err = before.refuseIrregular()
	}
	if err != nil {
		return -1, nil, err
	}
	fd, err := s.dir.open(s.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, nil, fileError(err)
	}
	after, err := lookAt(fd, "")
	if err == nil {
		err = after.refuseIrregular()
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fileError(err)
	}
	return fd, after, nil
}

// openDir opens a directory for reading its names.
func (s *spot) openDir() (*dir, error) {
	d, err := s.dir.descend(s.name)
	if err != nil {
		return nil, err
	}
	defer d.close()
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fileError(err)
	}
	return &dir{s.dir.files, fd}, nil
}
