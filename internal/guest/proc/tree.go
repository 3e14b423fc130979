package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How a tree is ended.
const (
	// killTimeout bounds how long a tree that keeps forking is killed.
	killTimeout = 2 * time.Second
	// quickPasses is how many passes are made before all processes are stopped.
	quickPasses = 3
	pollFirst   = time.Millisecond
	PollLast    = 25 * time.Millisecond
)

// Tree is the process of one exec and all its descendants, or those of several.
type Tree struct {
	execs  ExecSet
	walker *Walker
}

// End sends SIGTERM to every process of the tree, waits up to grace, and kills what is
// left. It returns false if a process is left after killTimeout.
func (t *Tree) End(grace time.Duration) bool {
	if grace > 0 {
		if t.SignalAndCheck(unix.SIGTERM) {
			return true
		}
		t.Signal(unix.SIGCONT) // a stopped process does not handle SIGTERM
		if t.waitEmpty(grace) {
			return true
		}
	}
	return t.Kill()
}

// Kill passes over the tree until no process is left. A process with a pending SIGKILL
// cannot fork any more, so a pass misses only what was forked before its parent was
// killed, and the next pass finds that. For a tree that forks faster, all processes of
// the sandbox are stopped first.
func (t *Tree) Kill() bool {
	deadline := time.Now().Add(killTimeout)
	for pass, pause := 0, pollFirst; ; pass, pause = pass+1, min(2*pause, PollLast) {
		if pass >= quickPasses && t.walker.killStopped(t.execs) {
			return true
		}
		if t.SignalAndCheck(unix.SIGKILL) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// waitEmpty waits until the tree is empty, at most for d.
func (t *Tree) waitEmpty(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for pause := pollFirst; ; pause = min(2*pause, PollLast) {
		if t.SignalAndCheck(0) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// SignalAndCheck sends sig to the processes of the tree, and reports whether there were
// none. A walk alone may miss a process that keeps forking and exiting; but then the
// guest reaps what exits. So a walk that found none counts only if no process of the
// tree was reaped meanwhile.
func (t *Tree) SignalAndCheck(sig unix.Signal) bool {
	watch := t.walker.reaper.watchExits(t.execs)
	found := t.Signal(sig)
	return t.walker.reaper.stopWatch(watch) == 0 && found == 0
}

// Signal sends sig to every living process of the tree and returns how many
// there were. Signal 0 only counts.
func (t *Tree) Signal(sig unix.Signal) int { return t.walker.signal(t.execs, sig) }

// PreferForOOM makes the kernel prefer every process of the tree when memory runs out.
// Processes that they start later inherit it.
func (t *Tree) PreferForOOM() { t.walker.visit(t.execs, PreferForOOM) }

// Has reports whether pid is a living process of the tree.
func (t *Tree) Has(pid int) bool {
	lowest, highest, ok := t.walker.marksOf(pid)
	return ok && lowest <= highest && t.execs.MayContain(lowest, highest) && !processState(pid).dead()
}

// state is the part of /proc/PID/stat that the guest reads.
type state struct {
	letter  byte
	parent  int
	threads int
}

// dead reports whether a process only waits to be reaped. The letter alone does not
// tell: it is also Z when just the first thread has ended.
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

// PreferForOOM sets the OOM score of a process. It is best effort: the process may have
// ended.
func PreferForOOM(pid int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, []byte(oomScore))
	unix.Close(fd)
}

// oomScore puts the sandbox's processes before the guest when memory runs out. A process
// can lower its own only to the guest's.
const oomScore = "500"
