package files

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// fileInfo is the result of statx.
type fileInfo struct {
	mode             uint32
	size             int64
	mtime, ctime     int64 // ns
	nlink            uint64
	uid, gid         uint32
	device, inode    uint64
	mount            bool // the root of a mount
	mountID          uint64
	mountIDIsUnknown bool
}

const statMask = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID

// statAt returns the attributes of a name in a directory, or with an empty name of the
// open file fd. Links are not followed, and automounts are not triggered.
func statAt(fd int, name string) (*fileInfo, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var stx unix.Statx_t
	err := unix.Statx(fd, name, flags, statMask, &stx)
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM): // an old kernel, or an old filter
		return statAtOld(fd, name)
	case err != nil:
		return nil, err
	}
	return &fileInfo{
		mode: uint32(stx.Mode), size: int64(stx.Size), mtime: statxTime(stx.Mtime), ctime: statxTime(stx.Ctime),
		nlink: uint64(stx.Nlink), uid: stx.Uid, gid: stx.Gid,
		device: unix.Mkdev(stx.Dev_major, stx.Dev_minor), inode: stx.Ino,
		mount:   stx.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
		mountID: stx.Mnt_id, mountIDIsUnknown: stx.Mask&unix.STATX_MNT_ID == 0,
	}, nil
}

func statxTime(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// statAtOld is statAt without statx.
func statAtOld(fd int, name string) (*fileInfo, error) {
	var st unix.Stat_t
	var err error
	if name == "" {
		err = unix.Fstat(fd, &st)
	} else {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	}
	if err != nil {
		return nil, err
	}
	return &fileInfo{
		mode: st.Mode, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), nlink: uint64(st.Nlink), //nolint:unconvert // not on every processor
		uid: st.Uid, gid: st.Gid, device: st.Dev, inode: st.Ino, mountIDIsUnknown: true,
	}, nil
}

var fileKinds = map[uint32]wire.FileKind{
	unix.S_IFREG: wire.KindFile, unix.S_IFDIR: wire.KindDir, unix.S_IFLNK: wire.KindSymlink,
	unix.S_IFIFO: wire.KindFIFO, unix.S_IFSOCK: wire.KindSocket,
	unix.S_IFCHR: wire.KindDevice, unix.S_IFBLK: wire.KindDevice,
}

func (f *fileInfo) kind() wire.FileKind { return fileKinds[f.mode&unix.S_IFMT] }

// same reports whether both are the same file.
func (f *fileInfo) same(other *fileInfo) bool {
	return f.device == other.device && f.inode == other.inode
}

func (f *fileInfo) wireStat() *wire.FileStat {
	return &wire.FileStat{
		Kind: f.kind(), Size: f.size, Mode: f.mode & 0o777, MtimeNs: f.mtime, Links: f.nlink,
		UID: f.uid, GID: f.gid, Mount: f.mount,
	}
}

func (f *fileInfo) entry(path string) wire.FileEntry {
	return wire.FileEntry{
		Path: wire.Text(path), Kind: f.kind(), Size: f.size, Mode: f.mode & 0o777, MtimeNs: f.mtime, Mount: f.mount,
	}
}

var kindRefusals = map[wire.FileKind]wire.Code{
	wire.KindDir: wire.CodeIsDir, wire.KindSymlink: wire.CodeSymlink, wire.KindFIFO: wire.CodeFIFO,
	wire.KindSocket: wire.CodeSocket, wire.KindDevice: wire.CodeDevice,
}

// refuseIrregular refuses everything but a regular file with one link that lies on its
// root's own mount; the error names what it is.
func (f *fileInfo) refuseIrregular() error {
	if err := f.refuseOther(); err != nil {
		return err
	}
	if f.nlink > 1 {
		return refuse(wire.CodeHardLink)
	}
	return nil
}

// refuseOther refuses everything but a regular file that lies on its root's own mount.
func (f *fileInfo) refuseOther() error {
	switch {
	case f.mount:
		return refuse(wire.CodeMount)
	case f.kind() != wire.KindFile:
		return refuse(kindRefusals[f.kind()])
	}
	return nil
}

// refuseOddDirectory refuses everything but a directory on its root's own mount; the
// error names what it is.
func (f *fileInfo) refuseOddDirectory() error {
	switch {
	case f.mount:
		return refuse(wire.CodeMount)
	case f.kind() == wire.KindSymlink:
		return refuse(wire.CodeSymlink)
	case f.kind() != wire.KindDir:
		return refuse(wire.CodeNotDir)
	}
	return nil
}

// refuse returns a refusal without a message: the host has one for each code.
func refuse(code wire.Code) *wire.Error { return wire.Fail(code, "") }

// withSubject adds to an error the file that it concerns.
func withSubject(name string, err error) error {
	e := *wire.AsError(fileError(err))
	e.Subject = wire.Text(name[:min(len(name), maxReportedName)])
	return &e
}

var errnoCodes = map[unix.Errno]wire.Code{
	unix.ENOENT: wire.CodeFileNotFound, unix.EEXIST: wire.CodeFileExists,
	unix.EACCES: wire.CodeForbidden, unix.EPERM: wire.CodeForbidden,
	unix.EROFS: wire.CodeReadOnly, unix.ELOOP: wire.CodeSymlink,
	unix.EXDEV: wire.CodeMount, unix.EBUSY: wire.CodeMount,
	unix.EISDIR: wire.CodeIsDir, unix.ENOTDIR: wire.CodeNotDir, unix.ENOTEMPTY: wire.CodeNotEmpty,
	unix.ENOSPC: wire.CodeNoSpace, unix.EDQUOT: wire.CodeNoSpace, unix.EFBIG: wire.CodeTooLarge,
	unix.EMFILE: wire.CodeExhausted, unix.ENFILE: wire.CodeExhausted, unix.ENOMEM: wire.CodeExhausted,
	unix.ENAMETOOLONG: wire.CodeInvalid, unix.ENXIO: wire.CodeSocket,
}

// fileError turns an errno into an error with the wire's code.
func fileError(err error) error {
	errno, ok := errors.AsType[unix.Errno](err)
	if !ok {
		return err
	}
	code, ok := errnoCodes[errno]
	switch {
	case !ok:
		return wire.Fail(wire.CodeInternal, errno.Error())
	case code == wire.CodeExhausted || code == wire.CodeInvalid:
		return wire.Fail(code, errno.Error())
	}
	return refuse(code)
}
