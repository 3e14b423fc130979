package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lending are the bits that lend a file's owner's rights to who runs it.
const lending = unix.S_ISUID | unix.S_ISGID

// setID leaves a set-user-ID or set-group-ID file in a directory, by every call
// that sets a mode. Whether a step worked the file tells.
func setID(a *attempts, args []string) {
	dir := args[0]
	probe := filepath.Join(dir, "atoll-plain-"+strconv.Itoa(os.Getpid()))
	must(os.WriteFile(probe, nil, 0o600))
	must(unix.Chmod(probe, 0o755)) // what is usual works
	must(os.Remove(probe))
	for _, bits := range []uint32{unix.S_ISUID | 0o755, unix.S_ISGID | 0o755, lending | 0o777} {
		for name, step := range setIDSteps {
			path := filepath.Join(dir, fmt.Sprintf("atoll-setid-%d", os.Getpid()))
			err := step(path, bits)
			if err == nil && !lends(path) {
				err = unix.ENODATA // made, and plain
			}
			a.try(fmt.Sprintf("%s %o", name, bits), err)
			_ = os.RemoveAll(path)
		}
	}
}

// lends reports whether a file gives rights to who runs it.
func lends(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", make([]byte, 64))
	return err == nil || bitsOf(path) != 0
}

// bitsOf are the lending bits of a file that is no directory.
func bitsOf(path string) uint32 {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil || stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return 0
	}
	return stat.Mode & lending
}

// upper is a bit of a register that the kernel does not look at.
const upper = 1 << 40

var setIDSteps = map[string]func(path string, bits uint32) error{
	"fchmodat": func(path string, bits uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		return unix.Fchmodat(unix.AT_FDCWD, path, bits, 0)
	},
	"fchmodat, upper bits set": func(path string, bits uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		return byName(unix.SYS_FCHMODAT, path, uintptr(bits)|upper)
	},
	"fchmodat2": func(path string, bits uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		return byName(unix.SYS_FCHMODAT2, path, uintptr(bits))
	},
	"fchmod": func(path string, bits uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		must(err)
		defer unix.Close(fd)
		return unix.Fchmod(fd, bits)
	},
	"fchmodat through /proc": func(path string, bits uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		must(err)
		defer unix.Close(fd)
		return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), bits, 0)
	},
	"openat": func(path string, bits uint32) error {
		return closed(unix.Openat(unix.AT_FDCWD, path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, bits))
	},
	"openat, upper bits set": func(path string, bits uint32) error {
		return byName(unix.SYS_OPENAT, path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC|upper, uintptr(bits)|upper)
	},
	"openat2": func(path string, bits uint32) error {
		how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: uint64(bits)}
		return byName(unix.SYS_OPENAT2, path, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
	},
	"a file without a name, then linked": func(path string, bits uint32) error {
		fd, err := unix.Openat(unix.AT_FDCWD, filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, bits)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	},
	"mknodat": func(path string, bits uint32) error { return unix.Mknod(path, unix.S_IFREG|bits, 0) },
	"a pipe":  func(path string, bits uint32) error { return unix.Mkfifo(path, bits) },
	"file capabilities": func(path string, _ uint32) error {
		must(os.WriteFile(path, nil, 0o700))
		// Revision 2: effective, CAP_SETUID permitted.
		value := []byte{1, 0, 0, 2, 1 << unix.CAP_SETUID, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		return unix.Setxattr(path, "security.capability", value, 0)
	},
	"a program of the root, moved": func(path string, _ uint32) error {
		for _, program := range []string{"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/mount"} {
			if bitsOf(program) != 0 {
				return unix.Link(program, path)
			}
		}
		return unix.ENOENT
	},
}

func closed(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// byName makes a call whose first arguments are a directory and a path.
func byName(trap uintptr, path string, args ...uintptr) error {
	name, err := unix.BytePtrFromString(path)
	must(err)
	var all [4]uintptr
	copy(all[:], args)
	fd, _, errno := unix.Syscall6(trap, ^uintptr(99), uintptr(unsafe.Pointer(name)), all[0], all[1], all[2], 0)
	if errno != 0 {
		return errno
	}
	if fd > 2 {
		unix.Close(int(fd))
	}
	return nil
}
