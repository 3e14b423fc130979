// Package projectquota limits what a directory tree may hold by the project quotas of
// the file system, which the kernel enforces at every write. Only root can set them,
// on ext4 and XFS with project quotas switched on (mount option prjquota).
package projectquota

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnsupported means that the file system of a directory has no project quotas that
// this process may set. Nothing was changed.
var ErrUnsupported = errors.New("the file system has no project quotas")

// Limits are the hard limits of a tree. Zero is none.
type Limits struct {
	Bytes int64
	Files int64 // files, directories and links
}

// firstProject is the lowest of the project numbers given here. The numbers that
// administrators write into /etc/projid are small.
const firstProject = 1 << 30

// maxAttempts is how many project numbers are tried before giving up.
const maxAttempts = 64

// Apply makes an empty directory a project of its own with these limits. What is made
// below it later belongs to the project too.
func Apply(dir *os.File, limits Limits) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	for i := range uint32(maxAttempts) {
		project := firstProject + (uint32(st.Ino)+i)%firstProject
		switch free, err := isFree(dir, project); {
		case err != nil:
			return err
		case !free:
			continue
		}
		if err := setProject(dir, project); err != nil {
			return err
		}
		return setLimits(dir, project, limits)
	}
	return fmt.Errorf("no project number is free: %w", ErrUnsupported)
}

// quota is struct if_dqblk of the kernel.
type quota struct {
	bytesHard, bytesSoft, bytes uint64 // limits in blocks of 1 KiB
	filesHard, filesSoft, files uint64
	_, _                        uint64
	valid                       uint32
	_                           uint32
}

const (
	setQuota, getQuota = 0x800008, 0x800007
	projectType        = 2
	validLimits        = 1 | 4 // of blocks and of files
	blockSize          = 1024
)

// isFree reports whether no file belongs to a project and it has no limits.
func isFree(dir *os.File, project uint32) (bool, error) {
	var q quota
	err := control(dir, getQuota, project, &q)
	if errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	return err == nil && q.files == 0 && q.bytes == 0, err
}

func setLimits(dir *os.File, project uint32, l Limits) error {
	blocks := (uint64(max(l.Bytes, 0)) + blockSize - 1) / blockSize
	return control(dir, setQuota, project, &quota{bytesHard: blocks, filesHard: uint64(max(l.Files, 0)), valid: validLimits})
}

// control calls quotactl_fd(2), which golang.org/x/sys does not have.
func control(dir *os.File, command, project uint32, q *quota) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), uintptr(command<<8|projectType), uintptr(project), uintptr(unsafe.Pointer(q)), 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS, unix.ESRCH, unix.EPERM, unix.EOPNOTSUPP, unix.ENOTTY, unix.EINVAL, unix.ENODEV, unix.ENOTBLK:
		return fmt.Errorf("%w: %w", ErrUnsupported, errno)
	}
	return errno
}

// attributes is struct fsxattr of the kernel.
type attributes struct {
	flags, extentSize, extents, project, copyExtentSize uint32
	_                                                   [8]byte
}

const (
	getAttributes, setAttributes = 0x801c581f, 0x401c5820
	inheritProject               = 0x200
)

// setProject gives a directory, and what is made below it, to a project.
func setProject(dir *os.File, project uint32) error {
	var a attributes
	if err := attributesCall(dir, getAttributes, &a); err != nil {
		return err
	}
	a.project, a.flags = project, a.flags|inheritProject
	return attributesCall(dir, setAttributes, &a)
}

func attributesCall(dir *os.File, request uintptr, a *attributes) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), request, uintptr(unsafe.Pointer(a)))
	switch errno {
	case 0:
		return nil
	case unix.ENOTTY, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL:
		return fmt.Errorf("%w: %w", ErrUnsupported, errno)
	}
	return errno
}
