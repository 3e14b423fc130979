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
	step   run.Step // the last one; guarded by activeRuns.mu
}

func newActiveRuns(l *Limit) *activeRuns {
	a := &activeRuns{tasks: &taskLogs{limit: l, logs: map[taskID]*taskLog{}}, runs: map[string]*activeRun{}, listeners: map[string]map[chan struct{}]struct{}{}, streams: map[string]int{}}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// admitRun returns ErrDraining if no more runs are accepted; otherwise end must be
// called.
func (a *activeRuns) admitRun() (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return nil, session.ErrDraining
	}
	a.all.Add(1)
	return a.all.Done, nil
}

// admitTask is admitRun for tasks of sessions. A drain does not wait for them: the
// session service drains its own queues.
func (a *activeRuns) admitTask() (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return nil, session.ErrDraining
	}
	a.tasks.work.Add(1)
	return a.tasks.work.Done, nil
}

// start executes a run until its end. If the run is active already, it returns that
// one and calls discard.
func (a *activeRuns) start(id string, do func(context.Context, func(run.Event)), discard, end func()) *activeRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.runs[id]; w != nil {
		discard()
		end()
		return w
	}
	w := &activeRun{done: make(chan struct{}), step: run.Accepted}
	ctx, cancel := context.WithCancelCause(a.ctx)
	w.cancel, a.runs[id] = cancel, w
	go func() {
		defer end()
		defer a.finish(id, w)
		do(ctx, func(e run.Event) {
			a.setStep(w, &e)
			a.notify(id)
		})
	}()
	return w
}

func (a *activeRuns) finish(id string, w *activeRun) {
	a.mu.Lock()
	delete(a.runs, id)
	a.mu.Unlock()
	w.cancel(nil)
	close(w.done)
	a.notify(id)
}

// find returns a run that this process executes, or nil.
func (a *activeRuns) find(id string) *activeRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[id]
}

// running returns the number of active runs.
func (a *activeRuns) running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.runs)
}

// setStep notes how far a run has come.
func (a *activeRuns) setStep(w *activeRun, e *run.Event) {
	if e.Type != "step" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.step = e.Step
}

// steps returns the number of active runs by their step.
func (a *activeRuns) steps() map[run.Step]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := map[run.Step]int{}
	for _, w := range a.runs {
		n[w.step]++
	}
	return n
}

// subscribe returns a channel that is signalled when a run has new events.
func (a *activeRuns) subscribe(id string) (signal chan struct{}, quit func()) {
	signal = make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners[id] == nil {
		a.listeners[id] = map[chan struct{}]struct{}{}
	}
	a.listeners[id][signal] = struct{}{}
	return signal, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(a.listeners[id], signal); len(a.listeners[id]) == 0 {
			delete(a.listeners, id)
		}
	}
}

func (a *activeRuns) notify(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for signal := range a.listeners[id] {
		select {
		case signal <- struct{}{}:
		default: // it is signalled already
		}
	}
}

// openStream counts an event stream of a caller; ok is false above the limit,
// otherwise leave must be called.
func (a *activeRuns) openStream(caller string, most int) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[caller] >= most {
		return nil, false
	}
	a.streams[caller]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.streams[caller]--; a.streams[caller] == 0 {
			delete(a.streams, caller)
		}
	}, true
}

// drain accepts no more runs, waits for those under way, and cancels them when the
// context ends.
func (a *activeRuns) drain(ctx context.Context) {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	over := context.AfterFunc(ctx, a.stop)
	defer over()
	a.all.Wait()
}

func (a *activeRuns) close() {
	a.stop()
	a.drain(a.ctx)
	a.tasks.work.Wait()
}
