package usage

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quick makes the system calls of a journal without telling Go's scheduler. They
// are four a record, they touch memory only, and each that is announced after a
// moment of rest wakes the scheduler's monitor, which then looks around every 20
// microseconds: more work than the record itself. A write can wait for the disk
// after all, when the whole machine writes more than it can take, and would hold
// up others. So one that took long is followed by a while of announced ones.
type quick struct{ announced time.Time } // until when

const (
	slowWrite = 5 * time.Millisecond
	slowRest  = time.Second
	// wide: offsets fit into a register.
	wide = unsafe.Sizeof(uintptr(0)) == 8
)

// lock sets a lock of the file, or fails at once.
func (*quick) lock(f *os.File, how *unix.Flock_t) error {
	if !wide {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, how)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_FCNTL, f.Fd(), unix.F_OFD_SETLK, uintptr(unsafe.Pointer(how)))
	return asError(errno)
}

// stat reads facts of the file.
func (*quick) stat(f *os.File, facts *unix.Stat_t) error {
	if !wide {
		return unix.Fstat(int(f.Fd()), facts)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_FSTAT, f.Fd(), uintptr(unsafe.Pointer(facts)), 0)
	return asError(errno)
}

// writeAt writes all of b, which is not empty.
func (q *quick) writeAt(f *os.File, b []byte, at int64) error {
	begin := time.Now()
	if wide && begin.After(q.announced) {
		n, _, errno := unix.RawSyscall6(unix.SYS_PWRITE64, f.Fd(), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(at), 0, 0)
		if now := time.Now(); now.Sub(begin) > slowWrite {
			q.announced = now.Add(slowRest)
		}
		if errno == 0 && int(n) == len(b) {
			return nil
		}
	}
	_, err := f.WriteAt(b, at) // also what was interrupted, or fails: it says why
	return err
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
