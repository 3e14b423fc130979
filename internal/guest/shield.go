package guest

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shield closes the last door through which code of the same user can end
// the guest: prlimit(2) on another process asks for nothing but the same user,
// and with a CPU limit of a second, or no open files, process 1 is done for. So
// the guest, and everything it starts, may change limits only of itself. The
// runtime's own seccomp profile, whatever it is, stays in force beside this.

// prlimitCall is the number of prlimit64 on one architecture.
type prlimitCall struct{ arch, nr uint32 }

// prlimitCalls are those of every kind of program that may run here, the 32-bit
// ones too. The x32 numbers are those of amd64 with a bit set.
var prlimitCalls = map[string][]prlimitCall{
	"amd64": {{unix.AUDIT_ARCH_X86_64, 302}, {unix.AUDIT_ARCH_X86_64, 302 | 0x40000000}, {unix.AUDIT_ARCH_I386, 340}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, 261}, {unix.AUDIT_ARCH_ARM, 369}},
}

// Offsets in what a filter sees of a call (struct seccomp_data).
const (
	seccompNr        = 0
	seccompArch      = 4
	seccompPID       = 16      // the first argument
	seccompNewLimit  = 16 + 16 // the third, lower half
	seccompNewLimit2 = seccompNewLimit + 4
)

// raiseShield installs the filter on every thread. It cannot be undone.
func raiseShield() error {
	filter := shieldFilter(prlimitCalls[runtime.GOARCH])
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// shieldFilter refuses calls that set a limit of another process:
//
//	for each call: arch = its arch and nr = its nr → judge
//	allow
//	judge: pid = 0 → allow; new limit = 0 → allow; refuse
func shieldFilter(calls []prlimitCall) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// equal skips the given numbers of instructions.
	equal := func(value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: value}
	}
	verdict := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	var filter []unix.SockFilter
	for i, call := range calls {
		behind := 4 * (len(calls) - 1 - i) // instructions of the calls that follow
		filter = append(filter,
			load(seccompArch), equal(call.arch, 0, 2),
			load(seccompNr), equal(call.nr, behind+1, 0))
	}
	return append(filter,
		verdict(unix.SECCOMP_RET_ALLOW),
		load(seccompPID), equal(0, 4, 0),
		load(seccompNewLimit), equal(0, 0, 3),
		load(seccompNewLimit2), equal(0, 0, 1),
		verdict(unix.SECCOMP_RET_ALLOW),
		verdict(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
}
