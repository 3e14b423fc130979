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
	open map[cutKey]*flight
}

// wired is a connection over a wire that can break: machine's.
type wired interface{ Lost() bool }

// flight is a stream under way over a wire. One whose wire broke is about to
// become a cut, when it next looks.
type flight struct {
	wire wired
	over chan struct{} // closed when it has become one, or ended
	next *flight       // of the same request
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
	c.keep, c.seed, c.held, c.open = keep, maphash.MakeSeed(), map[cutKey]*cut{}, map[cutKey]*flight{}
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

// giveBack holds an answer that could not be given after all.
func (c *cuts) giveBack(k cutKey, answer *cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[k] = answer
}

func (c *cuts) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held) == 0 && len(c.open) == 0
}

// depart notes a stream under way, if its wire can break.
func (c *cuts) depart(k cutKey, over net.Conn) *flight {
	wire, ok := over.(wired)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &flight{wire: wire, over: make(chan struct{}), next: c.open[k]}
	c.open[k] = f
	return f
}

// arrive forgets it.
func (c *cuts) arrive(k cutKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.open[k]
	at := &first
	for *at != f {
		at = &(*at).next
	}
	if *at = f.next; first == nil {
		delete(c.open, k)
	} else {
		c.open[k] = first
	}
	close(f.over)
}

// falling is a stream of the same request whose wire broke, and that has not
// noticed yet; nil if there is none.
func (c *cuts) falling(k cutKey) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.open[k]
	for f != nil && !f.wire.Lost() {
		f = f.next
	}
	return f
}

// keptPiece is the smallest piece of memory for a stream that is kept.
const keptPiece = 16 << 10

// kept is what was passed on of a stream, in case its wire breaks.
type kept struct {
	wanted bool
	key    cutKey
	events []byte
	memory membudget.Share
	flight *flight // nil: of a wire that cannot break
}

// free gives the memory back, if any was wanted.
func (k *kept) free() {
	k.memory.Free()
}

// land ends the flight of a stream, if it had one.
func (x *exchange) land() {
	if f := x.kept.flight; f != nil {
		x.kept.flight = nil
		x.s.cuts.arrive(x.kept.key, f)
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
func (x *exchange) keepCut(body io.Reader, why error) {
	var place *cut
	if x.kept.wanted {
		place = x.s.cuts.begin(x.kept.key)
	}
	x.land()
	if place == nil {
		x.drain(body, why)
		return
	}
	defer close(place.done)
	x.watch.readOn(why, place.until)
	err := x.readOn(body)
	x.account.complete = errors.Is(err, io.EOF)
	if x.account.complete && x.kept.wanted {
		place.whole, place.events = true, append(x.kept.events, x.w.split.Rest()...)
		x.kept.events = nil
	}
}

// keepWhole keeps an answer whose wire was found to be broken when all of it had
// come.
func (x *exchange) keepWhole() {
	if !x.kept.wanted {
		return
	}
	if place := x.s.cuts.begin(x.kept.key); place != nil {
		place.whole, place.events = true, append(x.kept.events, x.w.split.Rest()...)
		x.kept.events = nil
		close(place.done)
	}
	x.land()
}

// readOn reads the answer to its end, or until the watch ends the call.
func (x *exchange) readOn(body io.Reader) error {
	for {
		n, err := x.readSome(body)
		if n > 0 {
			if err := x.w.split.Write(x.w.store[:n], x.absorb); err != nil {
				return err
			}
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
	key := x.s.cuts.key(x.caller, x.route, x.body)
	c := x.s.cuts.take(key)
	if f := x.s.cuts.falling(key); c == nil && f != nil {
		if err := x.awaitDone(f.over, time.Now().Add(x.s.cuts.keep)); err != nil {
			return x.fail(err), true
		}
		c = x.s.cuts.take(key)
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
	x.account.status, x.account.replayed = 200, true
	x.w.out.Begin(x.streamHead(x.w.out.Buf[:0], 200, nil))
	x.w.out.Append(c.events)
	err := x.flush(true)
	if x.isBroken(err) {
		x.s.cuts.giveBack(key, c)
	}
	return err == nil && !x.c.q.Close, true
}

// awaitDone waits for a channel to be closed, looking around meanwhile.
func (x *exchange) awaitDone(done <-chan struct{}, until time.Time) error {
	look := time.NewTicker(x.s.options.Tick)
	defer look.Stop()
	for {
		select {
		case <-done:
			return nil
		case now := <-look.C:
			if err := x.lookAround(now, until); err != nil {
				return err
			}
		}
	}
}
