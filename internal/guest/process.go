package guest

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// outputTimeout is how long the end of output is awaited after a process has
	// exited. It is only missed if descendants hold the output open.
	outputTimeout = 100 * time.Millisecond
	// reattachTimeout is how long a process runs on whose host is gone without a word.
	reattachTimeout = 60 * time.Second
	// defaultGrace lies between TERM and KILL unless the host says otherwise.
	defaultGrace = 2 * time.Second
	maxGrace     = 5 * time.Minute
	maxTimeout   = 365 * 24 * time.Hour
)

// process is one exec, from its start until it is forgotten.
type process struct {
	id         string
	command    string // for people
	pid        int
	tree       proc.Tree
	started    time.Time
	timeout    time.Duration
	grace      time.Duration
	endTree    bool
	background bool

	child   *spawn.Child // until the program is known to run
	attr    *spawn.Attr  // the same
	failure error        // valid when done is closed: why the program could not be run

	main   chan proc.Exit // receives that of the process itself
	memory *oomWatch
	kills  int64 // for want of memory, before it started

	pids    *proc.PidsWatch
	refused int64 // forks, before it started
	quota   *quotaEnforcer
	limits  []spawn.Limit

	out   *output
	stdio *stdio
	pumps []*pump

	done  chan struct{} // closed when exit and ended are final
	exit  wire.Exit
	ended time.Time

	mu       sync.Mutex
	ending   chan struct{} // closed by the first call of end
	reason   reason
	full     wire.QuotaLimit // with byQuota
	endGrace time.Duration

	resultUnwanted atomic.Bool // nobody will come back for its result

	treeOnce sync.Once
	stuck    bool // some of the tree could not be ended
}

// reason is why a process was ended.
type reason int

const (
	byItself reason = iota
	byTimeout
	byRequest
	byQuota
)

// supervise follows the process to its end, beside the caller.
func (p *process) supervise() {
	for i, file := range p.stdio.files() {
		p.pumps = append(p.pumps, newPump(file, p.out, i))
	}
	go p.follow()
}

func (p *process) follow() {
	end := p.awaitMain()
	stuck := false
	if why, _ := p.endReason(); why != byItself || p.endTree && !end.Childless {
		stuck = !p.endTreeOnce()
	}
	p.finish(end, p.finishOutput(), stuck)
}

// finish makes everything about the process final.
func (p *process) finish(end proc.Exit, left, stuck bool) {
	p.stdio.close()
	p.exit = p.result(end)
	p.exit.Left, p.exit.Stuck = left, stuck
	p.exit.Stdout, p.exit.Stderr = p.out.totals()
	if p.pids.Refused() > p.refused {
		p.exit.PidsLimitHit = p.pids.KillLeftovers()
	}
	p.exit.OOM = p.memory.killed(&p.exit, p.kills)
	p.exit.QuotaExceeded = p.quota.blockedBy(&p.exit, p.limits)
	p.ended = time.Now()
	close(p.done)
	p.out.close()
}

// awaitMain waits for the process itself. Once it is to end, its tree is ended
// beside the waiting, for it may only exit when its children do.
func (p *process) awaitMain() proc.Exit {
	if p.timeout > 0 {
		timer := time.AfterFunc(p.timeout-time.Since(p.started), func() { p.end(byTimeout, p.grace) })
		defer timer.Stop()
	}
	select {
	case end := <-p.main:
		return end
	case <-p.ending:
	}
	ended := make(chan struct{})
	go func() { p.endTreeOnce(); close(ended) }()
	select {
	case end := <-p.main:
		return end
	case <-ended:
	}
	select {
	case end := <-p.main:
		return end
	case <-time.After(outputTimeout):
		return proc.Exit{} // it does not die, and stuck says so
	}
}

// endTreeOnce ends the tree, once; whoever else calls it waits for that. It
// returns false if some of it is still there.
func (p *process) endTreeOnce() bool {
	p.treeOnce.Do(func() {
		_, grace := p.endReason()
		p.stuck = !p.tree.End(grace)
	})
	return !p.stuck
}

// end has the whole tree ended. Only the first reason counts.
func (p *process) end(why reason, grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == byItself {
		p.reason, p.endGrace = why, grace
		close(p.ending)
	}
}

// endForQuota has the whole tree killed because the workspace is full.
func (p *process) endForQuota(why wire.QuotaLimit) {
	p.mu.Lock()
	if p.reason == byItself {
		p.full = why
	}
	p.mu.Unlock()
	p.end(byQuota, 0)
}

// endReason tells the reason for which the process was ended, and the grace.
func (p *process) endReason() (reason, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == byItself {
		return byItself, p.grace
	}
	return p.reason, p.endGrace
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// finishOutput awaits the end of the outputs, or gives up waiting for
// descendants that hold them open. It tells whether there are such.
func (p *process) finishOutput() (left bool) {
	timer := time.NewTimer(outputTimeout)
	defer timer.Stop()
	for _, pump := range p.pumps {
		select {
		case <-pump.done:
		case <-timer.C:
			timer.Reset(0)
			pump.release()
			<-pump.done
		}
		left = left || !pump.ended
	}
	return left
}

func (p *process) result(end proc.Exit) wire.Exit {
	why, _ := p.endReason()
	x := wire.Exit{
		Code:       end.Status.ExitStatus(),
		TimedOut:   why == byTimeout,
		Ended:      why == byRequest,
		UserUs:     end.Usage.Utime.Nano() / 1000,
		SystemUs:   end.Usage.Stime.Nano() / 1000,
		MaxRSS:     end.Usage.Maxrss << 10,
		DurationUs: time.Since(p.started).Microseconds(),
	}
	if why == byQuota {
		x.QuotaExceeded = p.full
	}
	if end.Status.Signaled() {
		x.Code = 128 + int(end.Status.Signal())
		x.Signal = unix.SignalName(end.Status.Signal())
	}
	return x
}

// status is the process as others see it.
func (p *process) status() *wire.Status {
	s := &wire.Status{
		ID: p.id, PID: p.pid, Command: wire.Text(p.command), Background: p.background,
		TTY: p.stdio.tty, StartedMs: p.started.UnixMilli(),
	}
	s.Stdout, s.Stderr = p.out.totals()
	if p.over() {
		exit := p.exit
		s.Exit = &exit
	}
	return s
}
