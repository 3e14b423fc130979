package guest

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The guest installs a seccomp filter on itself, and so on everything it starts, beside
// the runtime's own profile. The filter refuses the calls by which code of the same user
// changes another process: with a CPU limit of a second or the lowest priority, process 1
// could not do its work. A process may change its own limits and priority only, by the
// pid 0. The filter also refuses fallocate, which fills the host's disk with one call.

// Offsets in struct seccomp_data.
const (
	seccompNr     = 0
	seccompArch   = 4
	seccompArg    = 16 // the first argument, lower half
	seccompArgLen = 8
)

// installSyscallFilter installs the filter on every thread. It cannot be undone.
func installSyscallFilter() error {
	filter := syscallFilter(filteredCalls[runtime.GOARCH])
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

// syscallFilter returns the program: a block for each architecture with one part for each
// call. All other calls are allowed.
func syscallFilter(archs []archCalls) []unix.SockFilter {
	filter := []unix.SockFilter{load(seccompArch)}
	for _, arch := range archs {
		block := []unix.SockFilter{load(seccompNr)}
		for _, call := range arch.calls {
			part := filterRules[call.rule]
			block = append(block, equal(call.nr, 0, len(part)))
			block = append(block, part...)
		}
		block = append(block, returns(unix.SECCOMP_RET_ALLOW))
		filter = append(filter, equal(arch.audit, 0, len(block)))
		filter = append(filter, block...)
	}
	return append(filter, returns(unix.SECCOMP_RET_ALLOW))
}

// filterRule decides a call by its arguments.
type filterRule int

const (
	ownLimits    filterRule = iota // prlimit64: sets limits of the caller, or reads any
	ownProcess                     // the first argument must be 0
	ownPolicy                      // sched_setscheduler: the same, and the usual policy for another is not carried out
	ownPriority                    // setpriority: of one process, which must be the caller
	ownIO                          // ioprio_set: the same
	notSupported                   // EOPNOTSUPP, as on a file system without fallocate
)

var filterRules = map[filterRule][]unix.SockFilter{
	ownLimits: {
		load(argument(0)), equal(0, 4, 0),
		load(argument(2)), equal(0, 0, 3),
		load(argument(2) + 4), equal(0, 0, 1),
		returns(unix.SECCOMP_RET_ALLOW), returns(returnEPERM)},
	ownProcess: {load(argument(0)), equal(0, 0, 1), returns(unix.SECCOMP_RET_ALLOW), returns(returnEPERM)},
	ownPolicy: {
		load(argument(0)), equal(0, 3, 0),
		load(argument(1)), equal(unix.SCHED_NORMAL, 2, 0),
		returns(returnEPERM), returns(unix.SECCOMP_RET_ALLOW), returns(returnDone)},
	ownPriority:  ownOnly(unix.PRIO_PROCESS),
	ownIO:        ownOnly(ioprioWhoProcess),
	notSupported: {returns(unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP))},
}

const (
	ioprioWhoProcess = 1
	returnEPERM      = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// returnDone answers a call with success without carrying it out. pthread_setschedparam
	// names the calling thread by its id, which the filter cannot tell from another's, and
	// programs set the policy that their threads have already: libzmq ends if that fails.
	returnDone = unix.SECCOMP_RET_ERRNO
)

// ownOnly allows a call whose target is the calling process.
func ownOnly(kind uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(argument(0)), equal(kind, 0, 3),
		load(argument(1)), equal(0, 0, 1),
		returns(unix.SECCOMP_RET_ALLOW), returns(returnEPERM)}
}

func argument(n uint32) uint32 { return seccompArg + n*seccompArgLen }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// equal skips yes instructions if the value is equal, else no.
func equal(value uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: value}
}

func returns(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}
