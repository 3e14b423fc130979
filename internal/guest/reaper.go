package guest

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// ending is what the kernel says of a process that ended.
type ending struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
	// barren says that the process has left no descendants: the guest had no
	// child left then, and whatever descends from an exec that has ended is, or
	// has an ancestor that is, its child; or nobody but the guest has made a
	// process since.
	barren bool
}

// reaper owns wait4: process 1 inherits every orphan, and two waiters would
// steal each other's children. It hands the endings of those that it started
// to whoever waits, and counts the rest.
type reaper struct {
	// forks is held shared while a child is made and put into waiting, and
	// exclusively while reaping: a child that ends at once is not missed.
	forks   sync.RWMutex
	lineage *lineage
	vigils  map[*vigil]bool // guarded by forks
	births  *births
	recent  headcount     // guarded by forks
	started atomic.Uint64 // processes

	mu      sync.Mutex
	waiting map[int]awaited
}

// awaited is a process of ours that runs: its number is taken, and nobody
// else's, until it is reaped.
type awaited struct {
	mark   mark
	done   chan<- ending
	before headcount // a while, or long, before it began
}

// vigil watches for deaths in a tree.
type vigil struct {
	kin  kin
	seen int // guarded by forks
}

func newReaper(l *lineage) *reaper {
	return &reaper{lineage: l, births: newBirths(), vigils: map[*vigil]bool{}, waiting: map[int]awaited{}}
}

// begin makes the process of exec m; the channel receives its ending.
func (r *reaper) begin(attr *spawn.Attr, m mark) (*spawn.Child, chan ending, error) {
	r.forks.RLock()
	defer r.forks.RUnlock()
	child, err := spawn.Begin(attr)
	if err != nil {
		return nil, nil, err
	}
	r.started.Add(1)
	done := make(chan ending, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[child.PID] = awaited{m, done, r.recent}
	return child, done, nil
}

// leads returns the exec whose first process pid is, if it is one.
func (r *reaper) leads(pid int) (mark, bool) {
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

// departed is a process of ours that has ended.
type departed struct {
	awaited
	ending
}

func (r *reaper) collect() {
	var ours []departed
	for {
		var e ending
		pid, errno := reapNow(r.mourn(), &e.status, &e.usage)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || pid <= 0 {
			r.hand(ours, errno == unix.ECHILD)
			return
		}
		if a, ok := r.take(pid); ok {
			ours = append(ours, departed{a, e})
		}
	}
}

// hand gives endings to whoever waits for them.
func (r *reaper) hand(ours []departed, childless bool) {
	if len(ours) > 0 && !childless {
		r.recent = r.births.count(r.started.Load())
	}
	for _, d := range ours {
		d.barren = childless || r.births.onlyOurs(d.before, r.recent)
		d.done <- d.ending
	}
}

// mourn looks whose the next dead is, if somebody keeps vigil: once it is reaped
// that cannot be told any more. It returns its number, or -1 for any.
func (r *reaper) mourn() int {
	if len(r.vigils) == 0 {
		return -1
	}
	var dead notice
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&dead)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || dead.pid <= 0 {
		return -1
	}
	pid := int(dead.pid)
	lowest, highest, _ := r.lineage.marksOf(pid)
	for v := range r.vigils {
		if lowest <= highest && v.kin.may(lowest, highest) {
			v.seen++
		}
	}
	return pid
}

// notice is what the kernel tells of a death (siginfo_t).
type notice struct {
	_   [4]int32
	pid int32
	_   [27]int32
}

// keepVigil begins to watch for deaths in a tree, after those so far.
func (r *reaper) keepVigil(k kin) *vigil {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	v := &vigil{kin: k}
	r.vigils[v] = true
	return v
}

// endVigil tells how many there were.
func (r *reaper) endVigil(v *vigil) int {
	r.forks.Lock()
	defer r.forks.Unlock()
	r.collect()
	delete(r.vigils, v)
	return v.seen
}

func (r *reaper) take(pid int) (awaited, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.waiting[pid]
	delete(r.waiting, pid)
	return a, ok
}
