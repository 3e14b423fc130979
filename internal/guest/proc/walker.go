package proc

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Walker walks over all processes for the trees. Many trees may be ended at once, and
// each needs several walks: one walk serves all requests that wait.
type Walker struct {
	lineage *Lineage
	reaper  *Reaper
	Procs   *List
	// alone says that the guest is process 1, so that all visible processes descend
	// from it and it may stop all of them for a moment.
	alone bool

	mu      sync.Mutex
	pending []*walkRequest
	walking bool

	stopping sync.Mutex // held by killStopped
}

// NewWalker returns a walker over the processes in procs. With alone the guest is
// process 1 of its pid namespace.
func NewWalker(l *Lineage, r *Reaper, procs *List, alone bool) *Walker {
	return &Walker{lineage: l, reaper: r, Procs: procs, alone: alone}
}

// Tree returns the processes that descend from execs.
func (w *Walker) Tree(execs ExecSet) Tree { return Tree{execs: execs, walker: w} }

// walkRequest asks a walk to visit the processes of some execs.
type walkRequest struct {
	execs ExecSet
	visit func(pid int) // nil: only count
	found int
	done  chan struct{}
}

// signal sends sig to every living process that may belong to the execs, and returns how
// many there were.
func (w *Walker) signal(execs ExecSet, sig unix.Signal) int {
	if sig == 0 {
		return w.visit(execs, nil)
	}
	return w.visit(execs, func(pid int) { _ = unix.Kill(pid, sig) })
}

// visit calls visit for every living process that may belong to the execs, and returns
// how many there were.
func (w *Walker) visit(execs ExecSet, visit func(pid int)) int {
	e := &walkRequest{execs: execs, visit: visit, done: make(chan struct{})}
	w.mu.Lock()
	w.pending = append(w.pending, e)
	if !w.walking {
		w.walking = true
		go w.run()
	}
	w.mu.Unlock()
	<-e.done
	return e.found
}

// run walks for as long as there are requests.
func (w *Walker) run() {
	for {
		w.mu.Lock()
		requests := w.pending
		w.pending = nil
		w.walking = len(requests) > 0
		w.mu.Unlock()
		if len(requests) == 0 {
			return
		}
		w.walk(requests)
		for _, e := range requests {
			close(e.done)
		}
	}
}

func (w *Walker) walk(requests []*walkRequest) {
	w.Procs.Each(func(pid int) {
		lowest, highest, ok := w.marksOf(pid)
		if !ok || lowest > highest {
			return
		}
		living := false // known to be, so far
		for _, e := range requests {
			if !e.execs.MayContain(lowest, highest) {
				continue
			}
			if living = living || !processState(pid).dead() && w.ours(pid); !living {
				return
			}
			e.found++
			if e.visit != nil {
				e.visit(pid)
			}
		}
	})
}

// MarksOf is Lineage.MarksOf, without a system call for the first process of an exec.
func (w *Walker) marksOf(pid int) (lowest, highest Mark, ok bool) {
	if m, ok := w.reaper.execOf(pid); ok {
		return m, m, true
	}
	return w.lineage.MarksOf(pid)
}

// ours reports whether pid descends from the guest. Where the guest is not process 1,
// as when it serves tools on a host, marks do not tell: every guest numbers its execs
// from 1, and processes of other sandboxes are visible. The guest adopts orphans, so
// it is an ancestor of every process that descends from one it started.
func (w *Walker) ours(pid int) bool {
	if w.alone {
		return true
	}
	for range ancestryTries {
		if found, certain := descends(pid, os.Getpid()); certain {
			return found
		}
	}
	return false
}

const (
	// ancestryTries is how often the ancestors of a process are read if they change
	// meanwhile.
	ancestryTries = 16
	// maxAncestors bounds how many ancestors are read.
	maxAncestors = 4096
)

// descends reports whether from is an ancestor of pid. The answer is not certain if an
// ancestor ended meanwhile.
func descends(pid, from int) (found, certain bool) {
	at := pid
	for range maxAncestors {
		s := processState(at)
		switch {
		case s.parent == from:
			return true, true
		case s.letter == 0:
			return false, at == pid // it is gone itself, or its parent is
		case s.parent <= 1:
			return false, true
		}
		at = s.parent
	}
	return false, true
}

// killStopped stops every process and then kills those of a tree. Stopping all is one
// system call, which a fork cannot escape: the child is either not created or stopped
// too. It returns true if there was no process left.
func (w *Walker) killStopped(execs ExecSet) bool {
	if !w.alone {
		return false // it would stop processes that are not ours
	}
	w.stopping.Lock()
	defer w.stopping.Unlock()
	stopped := map[int]bool{}
	w.Procs.Each(func(pid int) { stopped[pid] = processState(pid).stopped() })
	_ = unix.Kill(-1, unix.SIGSTOP)
	last := &walkRequest{execs: execs, visit: func(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }}
	w.walk([]*walkRequest{last})
	w.Procs.Each(func(pid int) {
		if !stopped[pid] {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	})
	return last.found == 0
}

// KillAll kills every process but the guest and those that a host started from outside, as
// the one that passes a wire on: they have no parent here, and nothing that began inside can
// lose its parent, as process 1 adopts every orphan. All are stopped first, in one system call,
// so that none forks while they are read; a SIGCONT that was under way then can undo that, so
// it ends with a pass that finds none that is not killed already. After killTimeout every
// process is killed, in one system call. The guest must be process 1.
func (w *Walker) KillAll() {
	w.stopping.Lock()
	defer w.stopping.Unlock()
	killed := map[int]bool{}
	for deadline := time.Now().Add(killTimeout); w.killInside(killed) > 0; time.Sleep(pollFirst) {
		if time.Now().After(deadline) {
			_ = unix.Kill(-1, unix.SIGKILL)
			return
		}
	}
}

// killInside stops all processes, kills those that began inside and lets the others go on. It
// returns how many were not in killed, and adds them.
func (w *Walker) killInside(killed map[int]bool) (found int) {
	_ = unix.Kill(-1, unix.SIGSTOP)
	w.Procs.Each(func(pid int) {
		s := processState(pid)
		if s.letter != 0 && s.parent == 0 {
			_ = unix.Kill(pid, unix.SIGCONT)
			return
		}
		_ = unix.Kill(pid, unix.SIGKILL) // also one of which nothing can be read
		if !killed[pid] && !s.dead() {
			killed[pid] = true
			found++
		}
	})
	return found
}
