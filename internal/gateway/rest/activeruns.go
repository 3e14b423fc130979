package rest

import (
	"context"
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/run"
)

// errCancelled is the cause of a run that was cancelled by request.
var errCancelled = errors.New("cancelled by request")

// activeRuns holds the runs that this process executes, and the listeners for
// events of runs.
type activeRuns struct {
	ctx  context.Context //nolint:containedctx // runs outlive the requests that ask for them
	stop context.CancelFunc

	mu        sync.Mutex
	closing   bool
	runs      map[string]*activeRun
	listeners map[string]map[chan struct{}]struct{}
	streams   map[string]int // by caller
	tasks     *taskLogs      // of sessions
	all       sync.WaitGroup
}

// activeRun is a run that this process executes.
type activeRun struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func newActiveRuns(l *Limit) *activeRuns {
	d := &activeRuns{tasks: &taskLogs{limit: l, logs: map[taskID]*taskLog{}}, runs: map[string]*activeRun{}, listeners: map[string]map[chan struct{}]struct{}{}, streams: map[string]int{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// admitRun returns ErrDraining if no more runs are accepted; otherwise end must be
// called.
func (d *activeRuns) admitRun() (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, session.ErrDraining
	}
	d.all.Add(1)
	return d.all.Done, nil
}

// admitTask is admitRun for tasks of sessions. A drain does not wait for them: the
// session service drains its own queues.
func (d *activeRuns) admitTask() (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, session.ErrDraining
	}
	d.tasks.work.Add(1)
	return d.tasks.work.Done, nil
}

// start executes a run until its end. If the run is active already, it returns that
// one and calls forsake.
func (d *activeRuns) start(id string, do func(context.Context, func(run.Event)), forsake, end func()) *activeRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.runs[id]; w != nil {
		forsake()
		end()
		return w
	}
	w := &activeRun{done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(d.ctx)
	w.cancel, d.runs[id] = cancel, w
	go func() {
		defer end()
		defer d.finish(id, w)
		do(ctx, func(run.Event) { d.notify(id) })
	}()
	return w
}

func (d *activeRuns) finish(id string, w *activeRun) {
	d.mu.Lock()
	delete(d.runs, id)
	d.mu.Unlock()
	w.cancel(nil)
	close(w.done)
	d.notify(id)
}

// find returns a run that this process executes, or nil.
func (d *activeRuns) find(id string) *activeRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}

// running returns the number of active runs.
func (d *activeRuns) running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.runs)
}

// subscribe returns a channel that is signalled when a run has new events.
func (d *activeRuns) subscribe(id string) (bell chan struct{}, quit func()) {
	bell = make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listeners[id] == nil {
		d.listeners[id] = map[chan struct{}]struct{}{}
	}
	d.listeners[id][bell] = struct{}{}
	return bell, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.listeners[id], bell); len(d.listeners[id]) == 0 {
			delete(d.listeners, id)
		}
	}
}

func (d *activeRuns) notify(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for bell := range d.listeners[id] {
		select {
		case bell <- struct{}{}:
		default: // it is signalled already
		}
	}
}

// openStream counts an event stream of a caller; ok is false above the limit,
// otherwise leave must be called.
func (d *activeRuns) openStream(caller string, most int) (leave func(), ok bool) {
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

// drain accepts no more runs, waits for those under way, and cancels them when the
// context ends.
func (d *activeRuns) drain(ctx context.Context) {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	over := context.AfterFunc(ctx, d.stop)
	defer over()
	d.all.Wait()
}

func (d *activeRuns) close() {
	d.stop()
	d.drain(d.ctx)
	d.tasks.work.Wait()
}
