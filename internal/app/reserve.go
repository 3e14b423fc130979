package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// reserveFile is a file of diskReserve bytes in the state directory that holds
// nothing but its blocks. Whatever a sandbox writes, and however fast, it cannot
// have these. When the disk runs full the file is removed: then there is room
// for what Atoll itself has to write.
const reserveFile = "reserve"

// blockSize is the unit in which stat counts what a file takes of a disk.
const blockSize = 512

// keepReserve sees to it that the reserve is allocated, or returns errDiskFull
// where that would take the last of the disk. A file system that cannot allocate,
// or that is in memory, has none.
func (a *App) keepReserve(free int64) error {
	file, err := os.OpenFile(a.reservePath(), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Blocks*blockSize >= diskReserve || !onDisk(file) {
		return err
	}
	if free < 2*diskReserve {
		a.giveUpReserve()
		return errDiskFull
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, diskReserve)
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

// hasReserve reports whether the reserve is there.
func (a *App) hasReserve() bool {
	_, err := os.Lstat(a.reservePath())
	return err == nil
}

// giveUpReserve removes the reserve.
func (a *App) giveUpReserve() { _ = os.Remove(a.reservePath()) }

func (a *App) reservePath() string { return filepath.Join(a.Paths.AtollState, reserveFile) }

// openReserve gives the reserve up while the disk is full, so that the state
// directory can be written to. Sandboxes start again when there is room for it.
func (a *App) openReserve() {
	if free, err := a.free(); err == nil && free < diskReserve {
		a.giveUpReserve()
	}
}

// enough returns errDiskFull where a sandbox could take the last of the disk, and
// what is free.
func (a *App) enough() (free int64, err error) {
	free, err = a.free()
	switch {
	case err != nil:
		return free, err
	case free < diskReserve:
		a.giveUpReserve()
		return free, errDiskFull
	}
	return free, a.keepReserve(free)
}

// ranFull reports whether watchDisk ended a context. The reserve is given up
// then: what filled the disk has ended.
func (a *App) ranFull(ctx context.Context) bool {
	full := errors.Is(context.Cause(ctx), errDiskFull)
	if full {
		a.giveUpReserve()
	}
	return full
}
