package llm

import (
	"errors"
	"hash/maphash"
	"io"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/llm/dialect"
	"github.com/atoll-run/atoll/internal/llm/h1"
	"github.com/atoll-run/atoll/internal/llm/sse"
)

const (
	// maxCuts bounds the answers that wait for their callers, maxCut each.
	maxCuts = 32
	maxCut  = 1 << 20
)

// cuts holds the answers of callers whose wire broke in the middle. They are
// paid for; the caller's program asks again, with the same request, and gets the
// same answer. Nobody else does: the subject is part of the key.
type cuts struct {
	keep time.Duration
	seed maphash.Seed

	mu   sync.Mutex
	held map[cutKey]*cut
}

// cutKey is a request of a caller.
type cutKey struct {
	subject audit.Subject
	path    string
	size    int
	hash    uint64
}

// cut is an answer that is being read, or was.
type cut struct {
	until  time.Time
	done   chan struct{}
	whole  bool // it came to its end; valid when done is closed
	events []byte
}

func (c *cuts) init(keep time.Duration) {
	c.keep, c.seed, c.held = keep, maphash.MakeSeed(), map[cutKey]*cut{}
}

func (c *cuts) key(caller *Caller, r *route, body []byte) cutKey {
	return cutKey{subject: caller.Subject, path: r.upstream, size: len(body), hash: maphash.Bytes(c.seed, body)}
}

// begin makes a place for an answer; nil if there are too many.
func (c *cuts) begin(k cutKey) *cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for key, old := range c.held {
		if now.After(old.until) {
			delete(c.held, key)
		}
	}
	if len(c.held) >= maxCuts {
		return nil
	}
	n := &cut{done: make(chan struct{}), until: now.Add(c.keep)}
	c.held[k] = n
	return n
}

// take finds an answer and takes it out: it is given once.
func (c *cuts) take(k cutKey) *cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.held[k]
	delete(c.held, k)
	if found == nil || time.Now().After(found.until) {
		return nil
	}
	return found
}

func (c *cuts) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held) == 0
}

// keptPiece is the smallest piece of memory for a stream that is kept.
const keptPiece = 16 << 10

// kept is what was passed on of a stream, in case its wire breaks.
type kept struct {
	wanted bool
	key    cutKey
	events []byte
	memory memory
}

// free gives the memory back, if any was wanted.
func (k *kept) free() {
	if k.memory.room != nil {
		k.memory.free()
	}
}

// keep remembers an event, as long as there is room.
func (x *exchange) keep(event []byte) {
	k := &x.kept
	if len(k.events)+len(event) > maxCut {
		k.wanted = false
		return
	}
	if cap(k.events)-len(k.events) < len(event) {
		var err error
		if k.events, err = k.memory.Grow(k.events, len(event)); err != nil {
			k.wanted = false
			return
		}
	}
	k.events = append(k.events, event...)
}

// keepCut reads an answer to its end for a caller that will be back.
func (x *exchange) keepCut(l *link, body *h1.Body) {
	var place *cut
	if x.kept.wanted {
		place = x.s.cuts.begin(x.kept.key)
	}
	if place == nil {
		x.drain(l, body)
		return
	}
	defer close(place.done)
	err := x.readOn(l, body, place.until)
	x.account.complete = errors.Is(err, io.EOF)
	if x.account.complete && x.kept.wanted {
		place.whole, place.events = true, append(x.kept.events, x.w.split.Rest()...)
		x.kept.events = nil
	}
}

// readOn reads for nobody, until the end or a moment.
func (x *exchange) readOn(l *link, body *h1.Body, until time.Time) error {
	for {
		if err := l.SetReadDeadline(time.Now().Add(x.s.options.Tick)); err != nil {
			return err
		}
		piece, err := body.Next()
		switch {
		case err == nil:
			err = x.w.split.Write(piece, x.absorb)
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(until) && x.s.ctx.Err() == nil:
			err = nil
		}
		if err != nil {
			return err
		}
	}
}

// absorb counts an event that nobody gets, or not yet.
func (x *exchange) absorb(event []byte) error {
	x.account.absorbed += len(event)
	if data := sse.Data(nil, event); len(data) > 0 {
		switch x.w.meter.Event(data) {
		case dialect.Pass:
			x.account.count(len(event))
		case dialect.Count:
			if x.hidesCount() {
				return nil
			}
		}
	}
	if x.kept.wanted {
		x.keep(event)
	}
	return nil
}

// replay answers with what was kept for the caller, if anything was.
func (x *exchange) replay() (again, found bool) {
	if !x.ask.Stream || x.s.cuts.isEmpty() {
		return false, false
	}
	c := x.s.cuts.take(x.s.cuts.key(x.caller, x.route, x.body))
	if c == nil {
		return false, false
	}
	if err := x.awaitCut(c); err != nil {
		return x.fail(err), true
	}
	if !c.whole {
		return false, false
	}
	x.account.status, x.account.replayed = 200, true
	x.w.out.Begin(x.streamHead(x.w.out.Buf[:0], &h1.Response{Status: 200}))
	x.w.out.Append(c.events)
	return x.flush(true) == nil && !x.c.q.Close, true
}

func (x *exchange) awaitCut(c *cut) error {
	look := time.NewTicker(x.s.options.Tick)
	defer look.Stop()
	for {
		select {
		case <-c.done:
			return nil
		case <-look.C:
			if err := x.lookAround(c.until.Add(x.s.options.Tick)); err != nil {
				return err
			}
		}
	}
}
