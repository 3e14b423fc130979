package proc

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
)

// Exit is how a process ended.
type Exit struct {
	Status syscall.WaitStatus
	Usage  syscall.Rusage
	// Childless says that the guest had no child left when it was reaped. Then the
	// process has left no descendants: a descendant of an exec that has ended is a
	// child of the guest, or has an ancestor that is.
	Childless bool
}

// Reaper owns wait4: process 1 inherits every orphan, and two waiters would reap each
// other's children. It delivers the exits of the processes that it started to their
// channels, and drops the others.
type Reaper struct {
	// forks is held shared while a child is started and put into waiting, and
	// exclusively while reaping: a child that ends at once is not missed.
	forks   sync.RWMutex
	lineage *Lineage
	watches map[*exitWatch]bool // guarded by forks

	mu      sync.Mutex
	waiting map[int]runningChild
}

// runningChild is a process that the guest started. Its pid is not reused until it is
// reaped.
type runningChild struct {
	mark Mark
	done chan<- Exit
}

// exitWatch counts the processes of some execs that were reaped.
type exitWatch struct {
	execs ExecSet
	seen  int // guarded by forks
}

// NewReaper returns a reaper that has not started anything.
func NewReaper(l *Lineage) *Reaper {
	return &Reaper{lineage: l, watches: map[*exitWatch]bool{}, waiting: map[int]runningChild{}}
}

// Begin starts the process of exec m. The channel receives its exit.
func (r *Reaper) Begin(attr *spawn.Attr, m Mark) (*spawn.Child, chan Exit, error) {
	r.forks.RLock()
	defer r.forks.RUnlock()
	child, err := spawn.Begin(attr)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan Exit, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[child.PID] = runningChild{m, done}
	return child, done, nil
}

// execOf returns the exec whose first process is pid, if there is one.
func (r *Reaper) execOf(pid int) (Mark, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.waiting[pid]
	return a.mark, ok
}

// Run reaps whenever a child may have ended.
func (r *Reaper) Run(children <-chan os.Signal) {
	r.reap() // those that ended before the signal was caught
	for range children {
		r.reap()
	}
}

// reap collects every process that has ended.
func (r *Reaper) reap() {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
}

// exitedChild is a process that the guest started and that has ended.
type exitedChild struct {
	runningChild
	Exit
}

func (r *Reaper) collect() {
	var ours []exitedChild
	for {
		var e Exit
		pid, errno := reapNow(r.peekExited(), &e.Status, &e.Usage)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || pid <= 0 {
			r.deliver(ours, errno == unix.ECHILD)
			return
		}
		if a, ok := r.take(pid); ok {
			ours = append(ours, exitedChild{a, e})
		}
	}
}

// deliver sends exits to their channels.
func (r *Reaper) deliver(ours []exitedChild, childless bool) {
	for _, d := range ours {
		d.Childless = childless
		d.done <- d.Exit
	}
}

// peekExited returns the pid of the next process to reap, and counts it for the watches
// that it belongs to: once reaped its marks cannot be read. Without watches it returns
// -1, for any process.
func (r *Reaper) peekExited() int {
	if len(r.watches) == 0 {
		return -1
	}
	var dead siginfo
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&dead)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || dead.pid <= 0 {
		return -1
	}
	pid := int(dead.pid)
	lowest, highest, _ := r.lineage.MarksOf(pid)
	for v := range r.watches {
		if lowest <= highest && v.execs.MayContain(lowest, highest) {
			v.seen++
		}
	}
	return pid
}

// siginfo is siginfo_t, as waitid fills it.
type siginfo struct {
	_   [4]int32
	pid int32
	_   [27]int32
}

// watchExits counts processes of execs that are reaped from now on.
func (r *Reaper) watchExits(k ExecSet) *exitWatch {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	v := &exitWatch{execs: k}
	r.watches[v] = true
	return v
}

// stopWatch ends a watch and returns its count.
func (r *Reaper) stopWatch(v *exitWatch) int {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	delete(r.watches, v)
	return v.seen
}

func (r *Reaper) take(pid int) (runningChild, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.waiting[pid]
	delete(r.waiting, pid)
	return a, ok
}

// reapNow reaps a process that has ended, if one has. The pid is -1 for any.
func reapNow(pid int, status *syscall.WaitStatus, usage *syscall.Rusage) (int, unix.Errno) {
	var code int32
	n, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&code)), unix.WNOHANG, uintptr(unsafe.Pointer(usage)), 0, 0)
	*status = syscall.WaitStatus(code)
	return int(n), errno
}
