package guest

import (
	"os"
	"sync"
	"syscall"

	"github.com/atoll-run/atoll/internal/guest/spawn"
)

// ending is what the kernel says of a process that ended.
type ending struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
}

// reaper owns wait4: process 1 inherits every orphan, and two waiters would
// steal each other's children. It hands the endings of those that it started
// to whoever waits, and forgets the rest.
type reaper struct {
	// forks is held shared while a child is made and put into waiting, and
	// exclusively while reaping: a child that ends at once is not missed.
	forks   sync.RWMutex
	mu      sync.Mutex
	waiting map[int]chan<- ending
}

func newReaper() *reaper { return &reaper{waiting: map[int]chan<- ending{}} }

// start starts a process; the channel receives its ending.
func (r *reaper) start(attr *spawn.Attr) (int, <-chan ending, error) {
	child, done, err := r.begin(attr)
	if err != nil {
		return 0, nil, err
	}
	return child.PID, done, child.Await()
}

// begin makes a child and expects its ending.
func (r *reaper) begin(attr *spawn.Attr) (*spawn.Child, <-chan ending, error) {
	r.forks.RLock()
	defer r.forks.RUnlock()
	child, err := spawn.Begin(attr)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan ending, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[child.PID] = done
	return child, done, nil
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
	for {
		var e ending
		pid, err := syscall.Wait4(-1, &e.status, syscall.WNOHANG, &e.usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if done, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			done <- e
		}
	}
}
