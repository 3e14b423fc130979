package proxy

import (
	"errors"
	"hash/maphash"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/sse"
)

const (
	// maxReplays bounds the answers that are kept, maxReplayBytes each of them.
	maxReplays     = 32
	maxReplayBytes = 1 << 20
)

// replayCache keeps the answers of streams whose wire was lost in the middle. They
// are paid for; a caller that sends the same request again gets the same answer.
// The subject is part of the key, so no other caller does.
type replayCache struct {
	keep time.Duration
	seed maphash.Seed

	mu       sync.Mutex
	replays  map[replayKey]*replay
	inflight map[replayKey]*inflight
}

// lossyConn is a connection over a wire that can be lost: a machine's.
type lossyConn interface{ Lost() bool }

// inflight is a stream under way over a wire. One whose wire was lost becomes a
// replay when its goroutine notices.
type inflight struct {
	conn  lossyConn
	ended chan struct{} // closed when it has become a replay, or ended
	next  *inflight     // of the same request
}

// replayKey identifies a request of a caller.
type replayKey struct {
	subject audit.Subject
	path    string
	size    int
	hash    uint64
}

// replay is an answer that was read to its end, or still is being read.
type replay struct {
	until  time.Time
	done   chan struct{}
	whole  bool // it was read to its end; valid when done is closed
	events []byte
}

func (c *replayCache) init(keep time.Duration) {
	c.keep, c.seed, c.replays, c.inflight = keep, maphash.MakeSeed(), map[replayKey]*replay{}, map[replayKey]*inflight{}
}

func (c *replayCache) key(caller *Caller, r *route, body []byte) replayKey {
	return replayKey{subject: caller.Subject, path: r.upstream, size: len(body), hash: maphash.Bytes(c.seed, body)}
}

// add returns a new entry for an answer; nil if there are too many.
func (c *replayCache) add(k replayKey) *replay {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for key, old := range c.replays {
		if now.After(old.until) {
			delete(c.replays, key)
		}
	}
	if len(c.replays) >= maxReplays {
		return nil
	}
	n := &replay{done: make(chan struct{}), until: now.Add(c.keep)}
	c.replays[k] = n
	return n
}

// take returns an answer and removes it: each is replayed once.
func (c *replayCache) take(k replayKey) *replay {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.replays[k]
	delete(c.replays, k)
	if found == nil || time.Now().After(found.until) {
		return nil
	}
	return found
}

// putBack keeps an answer again whose caller was lost during the replay.
func (c *replayCache) putBack(k replayKey, answer *replay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replays[k] = answer
}

func (c *replayCache) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.replays) == 0 && len(c.inflight) == 0
}

// start adds a stream under way, if its wire can be lost.
func (c *replayCache) start(k replayKey, over net.Conn) *inflight {
	wire, ok := over.(lossyConn)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &inflight{conn: wire, ended: make(chan struct{}), next: c.inflight[k]}
	c.inflight[k] = f
	return f
}

// finish removes a stream that is under way no more.
func (c *replayCache) finish(k replayKey, f *inflight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.inflight[k]
	at := &first
	for *at != f {
		at = &(*at).next
	}
	if *at = f.next; first == nil {
		delete(c.inflight, k)
	} else {
		c.inflight[k] = first
	}
	close(f.ended)
}

// lostStream returns a stream of the same request whose wire was lost without
// that its goroutine has noticed; nil if there is none.
func (c *replayCache) lostStream(k replayKey) *inflight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.inflight[k]
	for f != nil && !f.conn.Lost() {
		f = f.next
	}
	return f
}

// minRecording is the smallest buffer for the events of a stream.
const minRecording = 16 << 10

// recording is what was passed on of a stream, in case its wire is lost.
type recording struct {
	on       bool
	key      replayKey
	events   []byte
	memory   membudget.Share
	inflight *inflight // nil: its wire cannot be lost
}

// free gives the memory back.
func (k *recording) free() {
	k.memory.Free()
}

// endInflight removes the stream from those under way, if it is one of them.
func (x *exchange) endInflight() {
	if f := x.recording.inflight; f != nil {
		x.recording.inflight = nil
		x.s.replays.finish(x.recording.key, f)
	}
}

// record adds an event, until the recording is too large.
func (x *exchange) record(event []byte) {
	k := &x.recording
	if len(k.events)+len(event) > maxReplayBytes {
		k.on = false
		return
	}
	if cap(k.events)-len(k.events) < len(event) {
		var err error
		if k.events, err = k.memory.Grow(k.events, len(event)); err != nil {
			k.on = false
			return
		}
	}
	k.events = append(k.events, event...)
}

// readForReplay reads an answer to its end for a caller that will ask again.
func (x *exchange) readForReplay(body io.Reader, why error) {
	var saved *replay
	if x.recording.on {
		saved = x.s.replays.add(x.recording.key)
	}
	x.endInflight()
	if saved == nil {
		x.drain(body, why)
		return
	}
	defer close(saved.done)
	x.watch.continueUntil(why, saved.until)
	err := x.readOn(body)
	x.stats.complete = errors.Is(err, io.EOF)
	if x.stats.complete && x.recording.on {
		saved.whole, saved.events = true, append(x.recording.events, x.w.split.Rest()...)
		x.recording.events = nil
	}
}

// saveReplay keeps an answer whose wire was found to be lost when all of it had
// been read.
func (x *exchange) saveReplay() {
	if !x.recording.on {
		return
	}
	if saved := x.s.replays.add(x.recording.key); saved != nil {
		saved.whole, saved.events = true, append(x.recording.events, x.w.split.Rest()...)
		x.recording.events = nil
		close(saved.done)
	}
	x.endInflight()
}

// continueUntil reads the answer to its end, or until the watch ends the call.
func (x *exchange) readOn(body io.Reader) error {
	for {
		n, err := x.readSome(body)
		if n > 0 {
			if err := x.w.split.Write(x.w.store[:n], x.countUnsent); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// countUnsent counts an event that is not sent to the caller, or not yet.
func (x *exchange) countUnsent(event []byte) error {
	x.stats.unsent += len(event)
	if data := sse.Data(nil, event); len(data) > 0 {
		switch x.w.meter.Event(data) {
		case dialect.Content:
			x.stats.count(len(event))
		case dialect.UsageOnly:
			if x.hidesCount() {
				return nil
			}
		}
	}
	if x.recording.on {
		x.record(event)
	}
	return nil
}

// replay answers with the replay of the request, if there is one.
func (x *exchange) replay() (again, found bool) {
	if !x.ask.Stream || x.s.replays.isEmpty() {
		return false, false
	}
	key := x.s.replays.key(x.caller, x.route, x.body)
	c := x.s.replays.take(key)
	if f := x.s.replays.lostStream(key); c == nil && f != nil {
		if err := x.awaitDone(f.ended, time.Now().Add(x.s.replays.keep)); err != nil {
			return x.fail(err), true
		}
		c = x.s.replays.take(key)
	}
	if c == nil {
		return false, false
	}
	if err := x.awaitDone(c.done, c.until.Add(x.s.options.Tick)); err != nil {
		return x.fail(err), true
	}
	if !c.whole {
		return false, false
	}
	x.stats.status, x.stats.replayed = 200, true
	x.w.out.Begin(x.streamHead(x.w.out.Buf[:0], 200, nil))
	x.w.out.Append(c.events)
	err := x.flush(true)
	if x.wireLost(err) {
		x.s.replays.putBack(key, c)
	}
	return err == nil && !x.c.q.Close, true
}

// awaitDone waits for a channel to be closed, or for a reason to stop.
func (x *exchange) awaitDone(done <-chan struct{}, until time.Time) error {
	look := time.NewTicker(x.s.options.Tick)
	defer look.Stop()
	for {
		select {
		case <-done:
			return nil
		case now := <-look.C:
			if err := x.checkStop(now, until); err != nil {
				return err
			}
		}
	}
}
