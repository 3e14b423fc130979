// The attack program tries to get out of a sandbox, one way at a time:
//
//	attack NAME [ARGUMENT…]
//
// It prints a line for each step that it tried, and ends with 0 if all of them
// were refused, 1 if one worked, 2 if it could not try. What it does where a
// step works is harmless: it touches canaries of the test, opens without
// writing, and changes only its own process.
package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// refusals are the answers of a wall. Any other error means that a step reached
// what it should not have, or was made wrongly.
var refusals = []error{
	unix.EPERM, unix.EACCES, unix.EROFS, unix.ENOSYS, unix.ENOENT, unix.ESRCH, unix.ECONNREFUSED, unix.ENETUNREACH,
	unix.EADDRNOTAVAIL, unix.ENXIO, unix.ENODEV, unix.EAFNOSUPPORT, unix.EXDEV, unix.ETXTBSY, unix.ENOTDIR, unix.ELOOP, unix.ENODATA,
}

// attempts are the steps of one attack.
type attempts struct{ worked, odd int }

// try notes how a step ended.
func (a *attempts) try(step string, err error) {
	switch {
	case err == nil:
		a.worked++
		fmt.Println("WORKED ", step)
	case isRefusal(err):
		fmt.Println("refused", step+":", err)
	default:
		a.odd++
		fmt.Println("ODD    ", step+":", err)
	}
}

func isRefusal(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// call makes a system call as it is.
func (a *attempts) call(step string, trap uintptr, args ...uintptr) uintptr {
	var all [6]uintptr
	copy(all[:], args)
	result, _, errno := syscall.Syscall6(trap, all[0], all[1], all[2], all[3], all[4], all[5])
	a.try(step, orNil(errno))
	return result
}

func orNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

var attacks = map[string]func(*attempts, []string){
	"mounts": mounts, "namespaces": namespaces, "keyrings": keyrings, "kernel-programs": kernelPrograms, "io-uring": ioUring,
	"trace": trace, "guest-memory": guestMemory, "guest-helper": guestHelper, "connect": connect, "signal": signal, "end-guest": endGuest, "end-others": endOthers, "abstract-socket": abstractSocket, "socket-families": socketFamilies,
	"read-host-file": readHostFile, "proc-sys": procSys, "core-pattern": corePattern, "sysrq": sysrq, "cgroup": cgroup, "devices": devices,
	"file-handle": fileHandle, "kernel-log": kernelLog, "clock": clock, "exe-overwrite": exeOverwrite, "descriptors": descriptors,
	"masked-paths": maskedPaths, "replace-devices": replaceDevices, "hard-link": hardLink, "replace-socket": replaceSocket, "privileges": privileges,
	"schedule": schedule, "schedule-files": scheduleFiles, "own-schedule": ownSchedule, "allocate": allocate,
	"forks": forks, "memory": memory, "fill": fill, "inodes": inodes, "files": files, "watchers": watchers, "sockets": sockets, "flight": flight, "fill-over": fillOver, "fill-behind": fillBehind, "fill-quick": fillQuick, "inodes-over": inodesOver, "clear": clearDir, "make-directory": makeDirectory, "stray-writes": strayWrites, "network": network,
	"set-id": setID, "shared-memory": sharedMemory,
	"reach": reach, "links": links, "enter": enter, "node-files": nodeFiles, "guest-file": guestFile, "forge-wire": forgeWire, "serve": serveOne,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: attack NAME [ARGUMENT…]")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "leave-memory":
		fmt.Println(leaveMemory())
		return
	case "hello": // what forge-wire sends, for a host that may
		_, _ = os.Stdout.Write(forgedHello())
		return
	case "held": // how much the files in a directory hold
		fmt.Println("held", held(os.Args[2]))
		return
	case "child": // what namespaces starts: being alive is enough
		return
	case "wait": // what forks starts: until the other end is closed
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	attack, ok := attacks[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such attack:", os.Args[1])
		os.Exit(2)
	}
	var a attempts
	attack(&a, os.Args[2:])
	switch {
	case a.worked > 0:
		os.Exit(1)
	case a.odd > 0:
		os.Exit(2)
	}
}

// must ends the program when a preparation fails.
func must(err error) {
	if err != nil {
		fmt.Println("ODD     preparation:", err)
		os.Exit(2)
	}
}
