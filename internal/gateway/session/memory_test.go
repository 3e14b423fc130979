package session_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
)

// large is what a worker has in memory during a task.
type large struct {
	usage      chat.Usage
	call       chat.Call
	place      session.Location
	transcript [1 << 20]byte
}

// pointing is a worker whose events point into its memory.
type pointing struct {
	*scriptedWorker
	memory weak.Pointer[large]
}

func (p *pointing) Work(_ context.Context, _ *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	l := &large{}
	l.transcript[0] = 1
	p.memory = weak.Make(l)
	tell(session.Event{Kind: session.Prepared, Location: &l.place})
	tell(session.Event{Kind: session.Called, Call: &l.call})
	tell(session.Event{Kind: session.Used, Usage: &l.usage})
	return &session.Outcome{Text: "done"}, nil
}

// Events that are kept after a task do not keep the memory of its worker: a session
// that is used again and again would keep its transcript once for every message.
func TestEventsDoNotHoldTheWorkersMemory(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	worker := &pointing{scriptedWorker: newHand()}
	d := &testService{t: t, Service: session.New(session.Options{DB: db, Worker: worker})}
	t.Cleanup(d.Close)
	sub := d.Subscribe(ann, 100)
	d.ask(ann, "agent:main:main", "a", "x")
	events := collect(t, sub, "a")
	d.until("the task is forgotten", func() bool { return d.Stats().Sessions == 0 })
	for end := time.Now().Add(testTimeout); worker.memory.Value() != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		runtime.GC()
	}
	if worker.memory.Value() != nil {
		t.Error("the memory of a task that is over is still held")
	}
	sub.Close()
	runtime.KeepAlive(events)
}
