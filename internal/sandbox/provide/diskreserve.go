package provide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/verify"
)

// reserveFile is a file of DiskReserve bytes in the state directory that holds
// nothing but its blocks. Whatever a sandbox writes, and however fast, it cannot
// have these. When the disk runs full the file is removed: then there is room
// for what Atoll itself has to write.
const reserveFile = "reserve"

// blockSize is the unit in which stat counts what a file takes of a disk.
const blockSize = 512

// keepReserve sees to it that the reserve is allocated, or returns errDiskFull
// where that would take the last of the disk. A file system that cannot allocate,
// or that is in memory, has none.
func (a *Installation) keepReserve(free int64) error {
	file, err := os.OpenFile(a.reservePath(), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Blocks*blockSize >= DiskReserve || !onDisk(file) {
		return err
	}
	if free < 2*DiskReserve {
		a.giveUpReserve()
		return ErrDiskFull
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, DiskReserve)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		a.giveUpReserve()
		return fmt.Errorf("%s: %w", a.reservePath(), err)
	}
	return nil
}

// onDisk reports whether a file's blocks are on a disk, and not in memory.
func onDisk(file *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &st) == nil && st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC
}

// HasReserve reports whether the reserve is there.
func (a *Installation) HasReserve() bool {
	_, err := os.Lstat(a.reservePath())
	return err == nil
}

// reserveCheck tries to keep the reserve, and reports what is allocated.
func (a *Installation) reserveCheck() verify.Check {
	held := int64(0)
	if _, err := a.CheckDisk(); err == nil {
		held = a.reserveHeld()
	}
	return verify.DiskReserve(held, DiskReserve)
}

// reserveHeld returns the bytes that the reserve has allocated after keepReserve;
// -1 if the file system of the state directory cannot allocate any.
func (a *Installation) reserveHeld() int64 {
	var st unix.Stat_t
	if unix.Lstat(a.reservePath(), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0
	}
	if st.Blocks == 0 {
		return -1
	}
	return st.Blocks * blockSize
}

// giveUpReserve removes the reserve.
func (a *Installation) giveUpReserve() { _ = os.Remove(a.reservePath()) }

func (a *Installation) reservePath() string { return filepath.Join(a.Paths.AtollState, reserveFile) }

// openReserve gives the reserve up while the disk is full, so that the state
// directory can be written to. Sandboxes start again when there is room for it.
func (a *Installation) openReserve() {
	if free, err := a.FreeBytes(); err == nil && free < DiskReserve {
		a.giveUpReserve()
	}
}

// CheckDisk returns errDiskFull where a sandbox could take the last of the disk, and
// what is free.
func (a *Installation) CheckDisk() (free int64, err error) {
	free, err = a.FreeBytes()
	switch {
	case err != nil:
		return free, err
	case free < DiskReserve:
		a.giveUpReserve()
		return free, ErrDiskFull
	}
	return free, a.keepReserve(free)
}

// DiskFilled reports whether watchDisk ended a context. The reserve is given up
// then: what filled the disk has ended.
func (a *Installation) DiskFilled(ctx context.Context) bool {
	full := errors.Is(context.Cause(ctx), ErrDiskFull)
	if full {
		a.giveUpReserve()
	}
	return full
}
