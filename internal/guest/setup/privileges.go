package setup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// securebits keep user 0 from getting capabilities by execve, and are locked.
const securebits = 1<<0 | 1<<1 | // NOROOT
	noSetuidFixup | 1<<3 |
	1<<5 | // KEEP_CAPS_LOCKED
	1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE

const noSetuidFixup = 1 << 2

// dropCapabilities clears every capability set of this thread, for good.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // there is no such capability
			break
		}
		if err != nil {
			return fmt.Errorf("bounding set: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient set: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// instruction is the size of one instruction of a filter.
const instruction = 8

// installFilter installs the seccomp program on this thread: the others end with execve.
func (b *builder) installFilter() error {
	program := make([]unix.SockFilter, 0, len(b.plan.Filter)/instruction)
	for code := b.plan.Filter; len(code) >= instruction; code = code[instruction:] {
		program = append(program, unix.SockFilter{
			Code: binary.LittleEndian.Uint16(code), Jt: code[2], Jf: code[3], K: binary.LittleEndian.Uint32(code[4:]),
		})
	}
	if len(program) == 0 {
		return errors.New("the filter is empty")
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return errno
	}
	return nil
}
