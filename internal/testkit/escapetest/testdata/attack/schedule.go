package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// schedule makes a process, and each of its threads, run only when nothing else
// does; with a second argument also every process of the same user.
func schedule(a *attempts, args []string) {
	threads, err := filepath.Glob("/proc/" + args[0] + "/task/*")
	must(err)
	for _, thread := range threads {
		pid := uintptr(number(filepath.Base(thread)))
		demote(a, " of "+filepath.Base(thread), pid)
	}
	a.call("setpriority of its group", unix.SYS_SETPRIORITY, unix.PRIO_PGRP, uintptr(number(args[0])), 19)
	if len(args) > 1 {
		demoteUser(a, uintptr(os.Getuid()))
	}
}

// demoteUser does so with all processes of a user. Outside a sandbox that would be the
// whole machine, for good.
func demoteUser(a *attempts, user uintptr) {
	a.call("setpriority of its user", unix.SYS_SETPRIORITY, unix.PRIO_USER, user, 19)
	a.call("ioprio_set of its user", unix.SYS_IOPRIO_SET, 3, user, idleClass)
}

// scheduleFiles makes a process, by each of its threads, the first to end when memory
// runs out and the last to run, by writing its files in /proc.
func scheduleFiles(a *attempts, args []string) {
	dirs, err := filepath.Glob("/proc/" + args[0] + "/task/*")
	must(err)
	for _, dir := range append(dirs, "/proc/"+args[0]) {
		for file, text := range map[string]string{"oom_score_adj": "1000", "oom_adj": "15", "autogroup": "19", "timerslack_ns": "1000000000"} {
			a.try("write "+dir+"/"+file, os.WriteFile(dir+"/"+file, []byte(text), 0))
		}
	}
}

// idleClass is the class of input and output that waits for all others, as ioprio_set takes it.
const idleClass = 3 << 13

func demote(a *attempts, whose string, pid uintptr) {
	const schedIdle = 5
	var param struct{ priority int32 }
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle, Nice: 19}
	var first [128]byte
	first[0] = 1
	a.call("sched_setscheduler"+whose, unix.SYS_SCHED_SETSCHEDULER, pid, schedIdle, uintptr(unsafe.Pointer(&param)))
	a.call("sched_setparam"+whose, unix.SYS_SCHED_SETPARAM, pid, uintptr(unsafe.Pointer(&param)))
	a.call("sched_setattr"+whose, unix.SYS_SCHED_SETATTR, pid, uintptr(unsafe.Pointer(&idle)), 0)
	a.call("sched_setaffinity"+whose, unix.SYS_SCHED_SETAFFINITY, pid, unsafe.Sizeof(first), uintptr(unsafe.Pointer(&first)))
	a.call("setpriority"+whose, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, pid, 19)
	a.call("setpriority with upper bits"+whose, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS|1<<32, pid|1<<32, 19)
	a.call("ioprio_set"+whose, unix.SYS_IOPRIO_SET, 1, pid, idleClass)
}

// ownSchedule changes the same of the program itself, which is allowed, and says
// so: what makes a program slower harms no other.
func ownSchedule(a *attempts, _ []string) {
	must(unix.Setpriority(unix.PRIO_PROCESS, 0, 19)) // which every process may, whatever its priority is
	var set unix.CPUSet
	must(unix.SchedGetaffinity(0, &set))
	must(unix.SchedSetaffinity(0, &set))
	must(policyByID())
	a.try("nice "+strconv.Itoa(os.Getpid()), nil)
}

// policyByID sets the usual policy for the calling thread by its id, as
// pthread_setschedparam does. That is answered with success and changes nothing: an id
// may be that of any thread.
func policyByID() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const usual, batch = 0, 3
	var param struct{ priority int32 }
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, batch, uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(unix.Gettid()), usual, uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	if now, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0); errno != 0 || now != batch {
		return fmt.Errorf("policy %d: %w", now, errno)
	}
	return nil
}

// allocate takes MiB of disk in one call, as posix_fallocate does.
func allocate(a *attempts, args []string) {
	f, err := os.Create(filepath.Join(args[0], "allocated"))
	must(err)
	for _, mode := range []uint32{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE} {
		err := unix.Fallocate(int(f.Fd()), mode, 0, int64(number(args[1]))<<20)
		if err == unix.EOPNOTSUPP {
			err = unix.EPERM // what a program takes for a file system that cannot
		}
		a.try("fallocate, mode "+strconv.Itoa(int(mode)), err)
	}
	must(os.Remove(f.Name()))
}
