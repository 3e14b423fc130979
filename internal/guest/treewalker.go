package guest

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// treeWalker walks over all processes on behalf of the trees. Many trees may be
// ended at once, and each looks again and again: one walk serves all that wait.
type treeWalker struct {
	lineage *lineage
	reaper  *reaper
	procs   *procList
	// alone says that no process but ours is visible here: the guest is
	// process 1, so that it may stop everybody for a moment.
	alone bool

	mu      sync.Mutex
	pending []*walkRequest
	walking bool

	stopping sync.Mutex
}

// walkRequest is one tree's part in a walk.
type walkRequest struct {
	execs execSet
	visit func(pid int) // nil: they are only counted
	found int
	done  chan struct{}
}

// signal sends sig to every living process that may be of the kin, as it finds
// them, and returns how many there were.
func (w *treeWalker) signal(k execSet, sig unix.Signal) int {
	if sig == 0 {
		return w.visit(k, nil)
	}
	return w.visit(k, func(pid int) { _ = unix.Kill(pid, sig) })
}

// visit visits every living process that may be of the kin, as it finds them,
// and returns how many there were.
func (w *treeWalker) visit(k execSet, visit func(pid int)) int {
	e := &walkRequest{execs: k, visit: visit, done: make(chan struct{})}
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

// run walks for as long as there are errands.
func (w *treeWalker) run() {
	for {
		w.mu.Lock()
		errands := w.pending
		w.pending = nil
		w.walking = len(errands) > 0
		w.mu.Unlock()
		if len(errands) == 0 {
			return
		}
		w.walk(errands)
		for _, e := range errands {
			close(e.done)
		}
	}
}

func (w *treeWalker) walk(errands []*walkRequest) {
	w.procs.each(func(pid int) {
		lowest, highest, ok := w.marksOf(pid)
		if !ok || lowest > highest {
			return
		}
		living := false // as far as was asked
		for _, e := range errands {
			if !e.execs.mayContain(lowest, highest) {
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

// marksOf is lineage's, but asks nobody about the first process of an exec.
func (w *treeWalker) marksOf(pid int) (lowest, highest mark, ok bool) {
	if m, ok := w.reaper.execOf(pid); ok {
		return m, m, true
	}
	return w.lineage.marksOf(pid)
}

// ours reports whether pid descends from the guest. Where the guest is not alone,
// as when it serves tools on a host, marks do not tell that: every guest numbers
// its execs from 1, and those of other sandboxes can be seen from there. The
// guest adopts orphans, so it is among the ancestors of all that it started.
func (w *treeWalker) ours(pid int) bool {
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
	// ancestryTries is how often a line of ancestors is followed that changes
	// under our eyes.
	ancestryTries = 16
	// maxAncestors bounds it.
	maxAncestors = 4096
)

// descends follows the parents of a process. It is not certain if one of them
// ended meanwhile: the next is not known then.
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

// killStopped kills a tree while every process here stands still. Stopping them
// is one system call, which a fork cannot slip through: the child either does
// not come to be or is stopped too. It returns true if there was nothing left.
func (w *treeWalker) killStopped(k execSet) bool {
	if !w.alone {
		return false // others than ours would stand still too
	}
	w.stopping.Lock()
	defer w.stopping.Unlock()
	stopped := map[int]bool{}
	w.procs.each(func(pid int) { stopped[pid] = processState(pid).stopped() })
	_ = unix.Kill(-1, unix.SIGSTOP)
	last := &walkRequest{execs: k, visit: func(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }}
	w.walk([]*walkRequest{last})
	w.procs.each(func(pid int) {
		if !stopped[pid] {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	})
	return last.found == 0
}
