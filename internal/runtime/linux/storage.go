package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// A root that may be changed only up to a size keeps its changes in a file
// system of that size, in a file that takes as much of the disk as is in use.
// It is mounted for one run of the sandbox, in its mount namespace only, and ends
// with that. Quotas of the file system below would do with
// less, where there are any; most hosts have none.

// storageFile holds the changes of a root with a size.
const storageFile = "changes.ext4"

// The least that makes a file system that can be used.
const (
	minStorage       = 16 << 20
	minStorageInodes = 64
)

const (
	makeProgram = "mkfs.ext4"
	loopControl = "/dev/loop-control"
)

// bounded reports whether the sandbox's root may be changed, up to a size.
func (i *Instance) bounded() bool { return isBounded(i.record.Spec) }

func isBounded(spec *sandbox.Spec) bool {
	return !spec.ReadOnlyRoot && spec.Limits.Storage != (sandbox.Storage{})
}

// storageGaps returns why the size of a root cannot be bounded here.
func storageGaps(spec *sandbox.Spec) []sandbox.Gap {
	if !isBounded(spec) {
		return nil
	}
	s := spec.Limits.Storage
	const instead = "remove docker.storageOpt; to bound files without it, keep docker.readOnlyRoot and give docker.tmpfs a size"
	var gaps []sandbox.Gap
	add := func(missing bool, reason, remedy string) {
		if missing {
			gaps = append(gaps, sandbox.Gap{Field: "docker.storageOpt", Reason: reason, Remedy: remedy})
		}
	}
	_, noProgram := exec.LookPath(makeProgram)
	_, noLoop := os.Stat(loopControl)
	add(s.Size < minStorage, fmt.Sprintf("size is %d bytes: too few for a file system", s.Size), fmt.Sprintf("set size to %d MiB or more", minStorage>>20))
	add(s.Inodes > 0 && s.Inodes < minStorageInodes, fmt.Sprintf("inodes is %d: too few for a file system", s.Inodes), fmt.Sprintf("set inodes to %d or more", minStorageInodes))
	add(!privileged(), "only root can mount the file system that bounds a root", "run as root, or "+instead)
	add(noProgram != nil, "there is no "+makeProgram+" to make a file system with", "install e2fsprogs, or "+instead)
	add(noLoop != nil, "there are no loop devices: "+loopControl+" is missing", "load the module loop, or "+instead)
	return gaps
}

// makeStorage makes the file system, empty: only its metadata is written.
func (i *Instance) makeStorage(ctx context.Context) error {
	if !i.bounded() {
		return nil
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil {
		return err
	}
	path, s := i.path(storageFile), i.record.Spec.Limits.Storage
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(s.Size), file.Close()); err != nil {
		return err
	}
	args := []string{"-q", "-F", "-m", "0", "-E", fmt.Sprintf("lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=%d:%d", user.uid, user.gid)}
	if s.Inodes > 0 {
		args = append(args, "-N", strconv.FormatInt(s.Inodes, 10))
	}
	cmd := exec.CommandContext(ctx, makeProgram, append(args, path)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", makeProgram, err, strings.TrimSpace(string(text)))
	}
	return prepareStorage(path, user)
}

// prepareStorage makes the two directories that an overlay takes.
func prepareStorage(path string, user account) error {
	mounted, err := mountStorage(path)
	if err != nil {
		return err
	}
	defer mounted.Close()
	for _, name := range []string{"upper", "work"} {
		fd := int(mounted.Fd())
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := unix.Fchownat(fd, name, user.uid, user.gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	keepSpares(mounted)
	return nil
}

// Spare files reserve a little space in the file system, so that a sandbox which
// has filled its root can be started again: mounting makes a few files. They are
// removed for the mount and made again after it.
const (
	spares    = 16
	spareSize = 4 << 10
)

func spareName(n int) string { return "spare" + strconv.Itoa(n) }

func freeSpares(mounted *os.File) {
	for n := range spares {
		_ = unix.Unlinkat(int(mounted.Fd()), spareName(n), 0)
	}
}

// keepSpares makes the spare files, as many as fit. It is called before any code of
// the sandbox runs.
func keepSpares(mounted *os.File) {
	for n := range spares {
		if mounted == nil {
			return
		}
		fd, err := unix.Openat(int(mounted.Fd()), spareName(n), unix.O_CREAT|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		_ = unix.Fallocate(fd, 0, 0, spareSize)
		unix.Close(fd)
	}
}

// loopTries and loopPause bound the retries when another process takes the free
// loop device first.
const (
	loopTries = 100
	loopPause = 5 * time.Millisecond
)

// mountStorage mounts the file system detached. When the last descriptor of it is
// closed, it is unmounted and its loop device is free again.
func mountStorage(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	device, err := takeLoop(file)
	if err != nil {
		return nil, fmt.Errorf("loop device: %w", err)
	}
	defer func() { _ = device.Close() }() // the mount has it by then
	return mountDevice(device.Name())
}

func takeLoop(file *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for try := 1; ; try++ {
		device, err := tryLoop(control, file)
		if !errors.Is(err, unix.EBUSY) || try == loopTries {
			return device, err
		}
		time.Sleep(loopPause)
	}
}

func tryLoop(control, file *os.File) (*os.File, error) {
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, err
	}
	device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	if err := unix.IoctlLoopConfigure(int(device.Fd()), config); err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return device, nil
}

func mountDevice(device string) (*os.File, error) {
	made, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(made)
	if err := unix.FsconfigSetString(made, "source", device); err != nil {
		return nil, err
	}
	if err := unix.FsconfigCreate(made); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	fd, err := unix.Fsmount(made, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	return os.NewFile(uintptr(fd), device), nil
}
