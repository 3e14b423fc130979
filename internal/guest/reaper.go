package guest

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// exitInfo is what the kernel says of a process that ended.
type exitInfo struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
	// childless says that the guest had no child left when it was reaped. Then the
	// process has left no descendants: a descendant of an exec that has ended is a
	// child of the guest, or has an ancestor that is.
	childless bool
}

// reaper owns wait4: process 1 inherits every orphan, and two waiters would
// steal each other's children. It hands the endings of those that it started
// to whoever waits, and counts the rest.
type reaper struct {
	// forks is held shared while a child is made and put into waiting, and
	// exclusively while reaping: a child that ends at once is not missed.
	forks   sync.RWMutex
	lineage *lineage
	watches map[*exitWatch]bool // guarded by forks

	mu      sync.Mutex
	waiting map[int]runningChild
}

// runningChild is a process of ours that runs: its number is taken, and nobody
// else's, until it is reaped.
type runningChild struct {
	mark mark
	done chan<- exitInfo
}

// exitWatch watches for deaths in a tree.
type exitWatch struct {
	execs execSet
	seen  int // guarded by forks
}

func newReaper(l *lineage) *reaper {
	return &reaper{lineage: l, watches: map[*exitWatch]bool{}, waiting: map[int]runningChild{}}
}

// begin makes the process of exec m; the channel receives its ending.
func (r *reaper) begin(attr *spawn.Attr, m mark) (*spawn.Child, chan exitInfo, error) {
	r.forks.RLock()
	defer r.forks.RUnlock()
	child, err := spawn.Begin(attr)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan exitInfo, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[child.PID] = runningChild{m, done}
	return child, done, nil
}

// execOf returns the exec whose first process pid is, if it is one.
func (r *reaper) execOf(pid int) (mark, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.waiting[pid]
	return a.mark, ok
}

// run reaps whenever a child may have ended.
func (r *reaper) run(children <-chan os.Signal) {
	r.reap() // those that ended before anybody listened
	for range children {
		r.reap()
	}
}

// reap collects every process that has ended.
func (r *reaper) reap() {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
}

// exitedChild is a process of ours that has ended.
type exitedChild struct {
	runningChild
	exitInfo
}

func (r *reaper) collect() {
	var ours []exitedChild
	for {
		var e exitInfo
		pid, errno := reapNow(r.peekExited(), &e.status, &e.usage)
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

// deliver gives endings to whoever waits for them.
func (r *reaper) deliver(ours []exitedChild, childless bool) {
	for _, d := range ours {
		d.childless = childless
		d.done <- d.exitInfo
	}
}

// peekExited looks whose the next dead is, if somebody keeps vigil: once it is reaped
// that cannot be told any more. It returns its number, or -1 for any.
func (r *reaper) peekExited() int {
	if len(r.watches) == 0 {
		return -1
	}
	var dead siginfo
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&dead)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || dead.pid <= 0 {
		return -1
	}
	pid := int(dead.pid)
	lowest, highest, _ := r.lineage.marksOf(pid)
	for v := range r.watches {
		if lowest <= highest && v.execs.mayContain(lowest, highest) {
			v.seen++
		}
	}
	return pid
}

// siginfo is what the kernel tells of a death (siginfo_t).
type siginfo struct {
	_   [4]int32
	pid int32
	_   [27]int32
}

// watchExits begins to watch for deaths in a tree, after those so far.
func (r *reaper) watchExits(k execSet) *exitWatch {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	v := &exitWatch{execs: k}
	r.watches[v] = true
	return v
}

// stopWatch tells how many there were.
func (r *reaper) stopWatch(v *exitWatch) int {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	delete(r.watches, v)
	return v.seen
}

func (r *reaper) take(pid int) (runningChild, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.waiting[pid]
	delete(r.waiting, pid)
	return a, ok
}
