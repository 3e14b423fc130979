package proxy

import (
	"sync"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/sse"
)

const (
	workerBody = 16 << 10 // a body that needs no memory of its own
	workerHead = 4 << 10
	workerOut  = 16 << 10
)

// worker is the memory that one request needs, kept for the next.
type worker struct {
	body   []byte // beginning of the request's body
	head   []byte
	text   []byte
	pieces [][]byte // of a request
	out    h1.ChunkWriter
	ask    *ask.Reader
	meter  *dialect.Meter
	split  sse.Splitter
	store  [workerBody]byte
}

var workers = sync.Pool{New: func() any {
	w := &worker{head: make([]byte, 0, workerHead), ask: ask.NewReader(), meter: dialect.NewMeter()}
	w.out.Buf = make([]byte, 0, workerOut)
	return w
}}

func getWorker() *worker {
	w := workers.Get().(*worker)
	w.body = w.store[:0]
	return w
}

// put gives the memory back. What has grown large is left to the collector.
func (w *worker) put() {
	if cap(w.head) > 4*maxJoined || cap(w.text) > maxJoined || cap(w.out.Buf) > 4*maxJoined || cap(w.split.Rest()) > maxJoined {
		return
	}
	w.split.Reset()
	w.body = nil
	workers.Put(w)
}
