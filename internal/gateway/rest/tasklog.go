package rest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// reducedLog is how many bytes of events are kept per task while all logs together
// exceed their limit.
const reducedLog = 4 << 10

// taskID identifies a task: ids are unique within an account.
type taskID struct{ account, id string }

// taskLogs keep the events of tasks until a while after their end, so that a reader
// whose connection broke can continue.
type taskLogs struct {
	limit *Limit
	bytes atomic.Int64 // bytes of all logs
	work  sync.WaitGroup

	mu   sync.Mutex
	logs map[taskID]*taskLog
}

// taskLog holds the events of one task. Above its limit the oldest are dropped.
type taskLog struct {
	all *taskLogs

	mu     sync.Mutex
	events []api.Event
	bytes  int64
	over   bool
	news   chan struct{} // closed when there are new events
}

// open returns the log of a task; fresh if it is new.
func (l *taskLogs) open(name taskID) (log *taskLog, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if log = l.logs[name]; log != nil {
		return log, false
	}
	log = &taskLog{all: l, news: make(chan struct{})}
	l.logs[name] = log
	return log, true
}

func (l *taskLogs) find(name taskID) *taskLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.logs[name]
}

func (l *taskLogs) drop(name taskID) {
	l.mu.Lock()
	log := l.logs[name]
	delete(l.logs, name)
	l.mu.Unlock()
	if log != nil {
		log.end()
		log.trim(0)
	}
}

// follow appends a task's events to its log until the task is over, events were
// lost, or stop is closed. The log is kept for KeepLog.
func (l *taskLogs) follow(name taskID, log *taskLog, s *session.Subscription, stop <-chan struct{}) {
	defer func() {
		s.Close()
		log.end()
		time.AfterFunc(l.limit.KeepLog, func() { l.drop(name) })
	}()
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return
			}
			log.add(&e)
			if e.Kind == session.Ended {
				return
			}
		case <-stop:
			return
		}
	}
}

// sizeOf estimates the memory of an event.
func sizeOf(e *api.Event) int64 {
	n := 256 + len(e.Text)
	if e.Call != nil {
		n += len(e.Call.Args) + len(e.Call.Name)
	}
	return int64(n)
}

func (l *taskLog) add(e *session.Event) {
	happened, tells := taskEvent(e)
	if !tells {
		return
	}
	l.mu.Lock()
	l.events = append(l.events, happened)
	n := sizeOf(&happened)
	l.bytes += n
	l.over = l.over || e.Kind == session.Ended
	close(l.news)
	l.news = make(chan struct{})
	l.mu.Unlock()
	most := l.all.limit.Log
	if l.all.bytes.Add(n) > l.all.limit.Logs {
		most = min(most, reducedLog)
	}
	l.trim(most)
}

// trim drops the oldest events; the last one stays unless most is 0.
func (l *taskLog) trim(most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.events) > 0 && l.bytes > most && (len(l.events) > 1 || most == 0) {
		n := sizeOf(&l.events[0])
		l.events[0] = api.Event{}
		l.events = l.events[1:]
		l.bytes -= n
		l.all.bytes.Add(-n)
	}
}

// end marks the log as complete.
func (l *taskLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.news)
		l.news = make(chan struct{})
	}
}

// after returns the events after a number, and a channel that is closed when there
// are more.
func (l *taskLog) after(seq int64) (events []api.Event, over bool, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.events)
	for at > 0 && l.events[at-1].Seq > seq {
		at--
	}
	return append(events, l.events[at:]...), l.over, l.news
}

// taskEvent converts an event of a session.
func taskEvent(e *session.Event) (api.Event, bool) {
	t := api.Event{Seq: e.Seq, At: e.At, Call: (*api.Call)(e.Call), IsError: e.IsError, TookMs: e.TookMs, Usage: (*api.Usage)(e.Usage)}
	switch e.Kind {
	case session.Started:
		t.Type = "started"
	case session.Prepared:
		t.Type, t.Place = "prepared", (*api.Location)(e.Location)
	case session.Said:
		t.Type, t.Text = "text_delta", e.Delta
	case session.Called:
		t.Type = "tool_call"
	case session.Returned:
		t.Type, t.Text = "tool_result", e.Result
	case session.Used:
		t.Type = "usage_report"
	case session.Noticed:
		t.Type, t.Text = "notice", e.Notice
	case session.Ended:
		t.Type = api.EventDone
	default:
		return api.Event{}, false
	}
	return t, true
}
