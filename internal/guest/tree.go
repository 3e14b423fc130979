package guest

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How hard the guest tries to end a tree.
const (
	// killTimeout bounds the passes of SIGKILL over a tree that grows back.
	killTimeout = 2 * time.Second
	// quickPasses is how many passes are made before everything is stopped.
	quickPasses = 3
	pollFirst   = time.Millisecond
	pollLast    = 25 * time.Millisecond
)

// tree is the process of one exec and all its descendants, or those of several.
type tree struct {
	execs  execSet
	walker *treeWalker
}

// end asks every process of the tree to end, waits up to grace, and kills what
// is left. It returns false if something is still there after killTimeout.
func (t *tree) end(grace time.Duration) bool {
	if grace > 0 {
		if t.signalAndCheck(unix.SIGTERM) {
			return true
		}
		t.signal(unix.SIGCONT) // who is stopped cannot obey
		if t.waitEmpty(grace) {
			return true
		}
	}
	return t.kill()
}

// kill passes over the tree until nothing is left. A process that has a
// SIGKILL coming cannot fork any more, so a pass misses only what was forked
// before its parent's turn, and that is found by the next one. A tree that forks
// faster than we look is stopped first, together with everybody else.
func (t *tree) kill() bool {
	deadline := time.Now().Add(killTimeout)
	for pass, pause := 0, pollFirst; ; pass, pause = pass+1, min(2*pause, pollLast) {
		if pass >= quickPasses && t.walker.killStopped(t.execs) {
			return true
		}
		if t.signalAndCheck(unix.SIGKILL) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// waitEmpty waits until the tree is empty, at most for d.
func (t *tree) waitEmpty(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		if t.signalAndCheck(0) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// signalAndCheck sends sig to whatever is left of the tree, and reports whether that was
// nothing. A walk alone may miss a process that forks and leaves time and again,
// ahead of it; but then the guest adopts and reaps what it leaves. So a walk
// that met nobody counts only if nothing of the tree was reaped meanwhile.
func (t *tree) signalAndCheck(sig unix.Signal) bool {
	vigil := t.walker.reaper.watchExits(t.execs)
	met := t.signal(sig)
	return t.walker.reaper.stopWatch(vigil) == 0 && met == 0
}

// signal sends sig to every living process of the tree and returns how many
// there were. Signal 0 only counts.
func (t *tree) signal(sig unix.Signal) int { return t.walker.signal(t.execs, sig) }

// preferForOOM has the kernel prefer every process of the tree when memory runs
// out. Those that they start later inherit it.
func (t *tree) preferForOOM() { t.walker.visit(t.execs, preferForOOM) }

// has reports whether pid is a living process of the tree.
func (t *tree) has(pid int) bool {
	lowest, highest, ok := t.walker.marksOf(pid)
	return ok && lowest <= highest && t.execs.mayContain(lowest, highest) && !processState(pid).dead()
}

// state is the part of /proc/PID/stat that the guest reads.
type state struct {
	letter  byte
	parent  int
	threads int
}

// dead is a process that only waits to be reaped. The letter alone would not
// do: it is Z, too, when just the first thread has ended and others go on.
func (s state) dead() bool {
	return s.letter == 0 || s.letter == 'X' || s.letter == 'Z' && s.threads <= 1
}

func (s state) stopped() bool { return s.letter == 'T' || s.letter == 't' }

// processState reads the state of pid; the zero state if it is gone.
func processState(pid int) state {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return state{}
	}
	// The command name, in parentheses, may hold anything: begin after it.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 18 {
		return state{}
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	threads, _ := strconv.Atoi(string(fields[17]))
	return state{fields[0][0], parent, threads}
}
