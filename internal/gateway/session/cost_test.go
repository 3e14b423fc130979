package session_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

// An idle session costs a row: no goroutine, and almost no memory.
func TestIdleSessionsCostNothing(t *testing.T) {
	d := open(t, session.Limits{})
	d.ask(ann, "warm", "warm", "say x")
	d.over(ann, "warm")
	d.until("it rests", func() bool { return d.Stats() == session.Stats{} })
	heap, routines := used(), runtime.NumGoroutine()
	const n = 200
	for i := range n {
		id := fmt.Sprint("t", i)
		d.ask(ann, "s"+id, id, "say x")
		d.over(ann, id)
	}
	d.until("they rest", func() bool { return d.Stats() == session.Stats{} })
	d.until("no goroutine is left", func() bool { return runtime.NumGoroutine() <= routines })
	d.scriptedWorker.mu.Lock()
	d.jobs, d.at, d.most, d.Transcripts = nil, nil, nil, gatewaytest.Transcripts{} // the test's own
	d.scriptedWorker.mu.Unlock()
	if more := used() - heap; more > n*10<<10 {
		t.Errorf("%d bytes for each of %d sessions", more/n, n)
	}
}

func used() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkTask is a task from its acceptance to its end, with a worker that does
// nothing.
func BenchmarkTask(b *testing.B) {
	d := open(b, session.Limits{})
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("t", i)
		d.ask(ann, fmt.Sprint("s", i%100), id, "say x")
		d.over(ann, id)
	}
}
