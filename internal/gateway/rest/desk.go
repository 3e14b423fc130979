package rest

import (
	"context"
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/run"
)

// errCancelled ends a run that somebody cancelled.
var errCancelled = errors.New("cancelled by request")

// desk holds the runs of this process that are under way, and whoever waits for
// news of a run.
type desk struct {
	ctx  context.Context //nolint:containedctx // runs outlive the requests that ask for them
	stop context.CancelFunc

	mu      sync.Mutex
	closing bool
	works   map[string]*work
	bells   map[string]map[chan struct{}]struct{}
	streams map[string]int // by caller
	tasks   *taskLogs      // of sessions
	all     sync.WaitGroup
}

// work is a run under way.
type work struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func newDesk(l *Limit) *desk {
	d := &desk{tasks: &taskLogs{limit: l, logs: map[taskName]*taskLog{}}, works: map[string]*work{}, bells: map[string]map[chan struct{}]struct{}{}, streams: map[string]int{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// open reports whether runs are taken; end must be called if they are.
func (d *desk) open() (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, session.ErrDraining
	}
	d.all.Add(1)
	return d.all.Done, nil
}

// openTask is open for tasks of sessions, whose queues end by themselves: a drain
// does not wait for them.
func (d *desk) openTask() (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, session.ErrDraining
	}
	d.tasks.work.Add(1)
	return d.tasks.work.Done, nil
}

// carry does a run until its end. If it is under way already, it joins that, and
// calls forsake.
func (d *desk) carry(id string, do func(context.Context, func(run.Event)), forsake, end func()) *work {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.works[id]; w != nil {
		forsake()
		end()
		return w
	}
	w := &work{done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(d.ctx)
	w.cancel, d.works[id] = cancel, w
	go func() {
		defer end()
		defer d.over(id, w)
		do(ctx, func(run.Event) { d.ring(id) })
	}()
	return w
}

func (d *desk) over(id string, w *work) {
	d.mu.Lock()
	delete(d.works, id)
	d.mu.Unlock()
	w.cancel(nil)
	close(w.done)
	d.ring(id)
}

// find returns a run that is under way here, or nil.
func (d *desk) find(id string) *work {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.works[id]
}

// running returns how many runs are under way here.
func (d *desk) running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.works)
}

// listen returns a bell that is rung when there is news of a run.
func (d *desk) listen(id string) (bell chan struct{}, quit func()) {
	bell = make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bells[id] == nil {
		d.bells[id] = map[chan struct{}]struct{}{}
	}
	d.bells[id][bell] = struct{}{}
	return bell, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.bells[id], bell); len(d.bells[id]) == 0 {
			delete(d.bells, id)
		}
	}
}

func (d *desk) ring(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for bell := range d.bells[id] {
		select {
		case bell <- struct{}{}:
		default: // it rings already
		}
	}
}

// enter counts a stream of a caller; leave must be called if there was room.
func (d *desk) enter(caller string, most int) (leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[caller] >= most {
		return nil, false
	}
	d.streams[caller]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.streams[caller]--; d.streams[caller] == 0 {
			delete(d.streams, caller)
		}
	}, true
}

// drain takes nothing new, and ends what is not over when the context ends.
func (d *desk) drain(ctx context.Context) {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	over := context.AfterFunc(ctx, d.stop)
	defer over()
	d.all.Wait()
}

func (d *desk) close() {
	d.stop()
	d.drain(d.ctx)
	d.tasks.work.Wait()
}
