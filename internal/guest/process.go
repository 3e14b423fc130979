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
	// outputTimeout is how long the end of output is awaited after a process has exited.
	// It does not come if descendants hold the output open.
	outputTimeout = 100 * time.Millisecond
	// reattachTimeout is how long a process runs on after its wire broke, unless Options say
	// otherwise.
	reattachTimeout = 60 * time.Second
	// defaultGrace is the time between SIGTERM and SIGKILL unless the request has one.
	defaultGrace = 2 * time.Second
	maxGrace     = 5 * time.Minute
	maxTimeout   = 365 * 24 * time.Hour
)

// process is one exec, from its start until it is removed from the table.
type process struct {
	id         string
	command    string // for display
	pid        int
	mark       proc.Mark
	tree       proc.Tree
	started    time.Time
	timeout    time.Duration
	grace      time.Duration
	endTree    bool
	background bool

	child   *spawn.Child // until the program runs
	attr    *spawn.Attr  // the same
	failure error        // why the program could not be run; valid when done is closed

	main   chan proc.Exit // receives the exit of the process itself
	memory *oomWatch
	kills  int64 // of the OOM killer, before it started

	pids    *proc.PidsWatch
	refused int64 // forks by the limit, before it started
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

	resultUnwanted atomic.Bool // the host will not ask for its result

	treeOnce sync.Once
	stuck    bool // some processes could not be ended
}

// reason is why a process ended.
type reason int

const (
	byItself reason = iota
	byTimeout
	byRequest
	byQuota
	byTermination
)

// supervise follows the process to its end in the background.
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

// finish makes the result of the process final.
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

// awaitMain waits for the process itself. When it is to be ended it ends the tree beside
// the waiting, as the process may exit only after its children.
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
		return proc.Exit{} // it could not be killed; stuck is set
	}
}

// endTreeOnce ends the tree, once; other callers wait for that. It returns false if a
// process is left.
func (p *process) endTreeOnce() bool {
	p.treeOnce.Do(func() {
		_, grace := p.endReason()
		p.stuck = !p.tree.End(grace)
	})
	return !p.stuck
}

// end makes awaitMain end the whole tree. Only the first reason counts.
func (p *process) end(why reason, grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == byItself {
		p.reason, p.endGrace = why, grace
		close(p.ending)
	}
}

// endForQuota makes awaitMain kill the whole tree because the workspace is full.
func (p *process) endForQuota(why wire.QuotaLimit) {
	p.mu.Lock()
	if p.reason == byItself {
		p.full = why
	}
	p.mu.Unlock()
	p.end(byQuota, 0)
}

// endReason returns why the process was ended, and the grace.
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

// finishOutput waits for the end of the outputs, at most outputTimeout. It reports whether
// descendants hold them open.
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
		Terminated: why == byTermination,
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

// status returns the process as listed to hosts.
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
