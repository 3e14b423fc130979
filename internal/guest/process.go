package guest

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// lingerFor is how long the end of output is awaited after a process has
	// exited. It is only missed if descendants hold the output open.
	lingerFor = 100 * time.Millisecond
	// orphanFor is how long a process runs on whose host is gone without a word.
	orphanFor = 60 * time.Second
	// defaultGrace lies between TERM and KILL unless the host says otherwise.
	defaultGrace = 2 * time.Second
	maxGrace     = 5 * time.Minute
)

// process is one exec, from its start until the host has its result.
type process struct {
	id      string
	pid     int
	tree    tree
	started time.Time
	timeout time.Duration
	grace   time.Duration
	endTree bool

	out   *output
	stdin *stdin // nil: /dev/null
	pumps [2]*pump

	done chan struct{} // closed when exit is final
	exit wire.Exit

	mu       sync.Mutex
	ending   chan struct{} // closed by the first call of end
	reason   reason
	endGrace time.Duration

	treeOnce sync.Once
	stuck    bool // some of the tree could not be ended
}

// reason is why a process was ended.
type reason int

const (
	byItself reason = iota
	byTimeout
	byRequest
)

// supervise follows the process to its end. It runs in its own goroutine.
func (p *process) supervise(main <-chan ending) {
	end := p.awaitMain(main)
	if why, _ := p.why(); why != byItself || p.endTree {
		p.endWhole()
	}
	left := p.finishOutput()
	p.exit = p.result(end)
	p.exit.Left, p.exit.Stuck = left, p.stuck
	p.exit.Stdout, p.exit.Stderr = p.out.totals()
	if p.stdin != nil {
		p.stdin.close()
	}
	close(p.done)
	p.out.close(0)
	p.out.close(1)
}

// awaitMain waits for the process itself. Once it is to end, its tree is ended
// beside the waiting, for it may only exit when its children do.
func (p *process) awaitMain(main <-chan ending) ending {
	if p.timeout > 0 {
		timer := time.AfterFunc(p.timeout, func() { p.end(byTimeout, p.grace) })
		defer timer.Stop()
	}
	select {
	case end := <-main:
		return end
	case <-p.ending:
	}
	ended := make(chan struct{})
	go func() { p.endWhole(); close(ended) }()
	select {
	case end := <-main:
		return end
	case <-ended:
	}
	select {
	case end := <-main:
		return end
	case <-time.After(lingerFor):
		return ending{} // it does not die, and stuck says so
	}
}

// endWhole ends the tree, once; whoever else calls it waits for that.
func (p *process) endWhole() {
	p.treeOnce.Do(func() {
		_, grace := p.why()
		p.stuck = !p.tree.end(grace)
	})
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

// why tells the reason for which the process was ended, and the grace.
func (p *process) why() (reason, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == byItself {
		return byItself, p.grace
	}
	return p.reason, p.endGrace
}

// finishOutput awaits the end of both outputs, or gives up waiting for
// descendants that hold them open. It tells whether there are such.
func (p *process) finishOutput() (left bool) {
	timer := time.NewTimer(lingerFor)
	defer timer.Stop()
	for _, pump := range p.pumps {
		if pump == nil {
			continue
		}
		select {
		case <-pump.done:
		case <-timer.C:
			timer.Reset(0)
			left = true
			pump.release()
			<-pump.done
		}
	}
	return left
}

func (p *process) result(end ending) wire.Exit {
	why, _ := p.why()
	x := wire.Exit{
		Code:       end.status.ExitStatus(),
		TimedOut:   why == byTimeout,
		Ended:      why == byRequest,
		UserUs:     end.usage.Utime.Nano() / 1000,
		SystemUs:   end.usage.Stime.Nano() / 1000,
		MaxRSS:     end.usage.Maxrss << 10,
		DurationUs: time.Since(p.started).Microseconds(),
	}
	if end.status.Signaled() {
		x.Code = 128 + int(end.status.Signal())
		x.Signal = unix.SignalName(end.status.Signal())
	}
	return x
}

// stdin is the writing end of a process's standard input.
type stdin struct {
	file *os.File
	mu   sync.Mutex
	n    int64 // bytes the process was given
}

// write blocks while the process does not read. A process that will never
// read is not an error: its input is swallowed, as a shell would.
func (s *stdin) write(b []byte) {
	n, err := s.file.Write(b)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		n = len(b)
	}
	s.mu.Lock()
	s.n += int64(n)
	s.mu.Unlock()
}

func (s *stdin) written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *stdin) close() { _ = s.file.Close() }
