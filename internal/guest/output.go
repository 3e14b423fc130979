package guest

import (
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/replay"
)

// The first and the last bytes of each output of a background process are kept.
const (
	maxLogHead = 32 << 10
	maxLogTail = 128 << 10
)

// output holds what a process wrote: two rings with one reader at a time.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	rings   [2]replay.Ring // stdout, stderr
	heads   [2][]byte      // of a log: the first bytes
	log     bool           // of a background process: never block, keep what fits
	reader  int            // number of the last reader, which alone may take
	read    bool           // there is a reader
	turn    int            // the ring that was read last

	followers map[*follower]struct{} // of a log: while there is one, a full ring blocks the process
	awaited   *follower              // takes the place of the first one; nil if that is not waited for
}

func newOutput() *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// newLog returns an output for a background process.
func newLog() *output {
	o := newOutput()
	o.log = true
	for i := range o.rings {
		o.rings[i].Loose, o.rings[i].Size = true, maxLogTail
	}
	return o
}

// discardWhenFull drops output when a ring is full, instead of blocking the process.
func (o *output) discardWhenFull() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].Loose, o.rings[1].Loose = true, true
	o.changed.Broadcast()
}

// The frames of the two rings.
var outputFrames = [2]wire.FrameType{wire.FrameStdout, wire.FrameStderr}

// write appends b to ring i, and waits for the reader when the ring is full.
func (o *output) write(i int, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log && len(o.heads[i]) < maxLogHead {
		o.heads[i] = append(o.heads[i], b[:min(len(b), maxLogHead-len(o.heads[i]))]...)
	}
	for len(b) > 0 {
		n := o.rings[i].Put(b)
		if n == 0 {
			o.changed.Wait()
			continue
		}
		b = b[n:]
		o.changed.Broadcast()
	}
}

// close ends both rings.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].Close()
	o.rings[1].Close()
	o.changed.Broadcast()
}

// totals returns the bytes written so far.
func (o *output) totals() (stdout, stderr int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rings[0].End(), o.rings[1].End()
}

// total returns the bytes written to ring i so far.
func (o *output) total(i int) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rings[i].End()
}

// attach makes the caller the reader, from the given offsets on. It returns the number
// of the reader.
func (o *output) attach(stdout, stderr int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].Rewind(stdout)
	o.rings[1].Rewind(stderr)
	o.reader++
	o.read = true
	o.changed.Broadcast()
	return o.reader
}

// attachFrom makes the caller the reader: from the offsets of a host that attaches, or, for
// the one that started the process, as attachFirst does.
func (o *output) attachFrom(from *wire.Attach) (reader int, ok bool) {
	if from == nil {
		return o.attachFirst()
	}
	return o.attach(from.Stdout, from.Stderr), true
}

// attachFirst makes the caller the reader from the start, unless another was before it: the
// host of a connection that broke may attach before the request that it sent over that
// connection has its answer, and must not lose the output to it.
func (o *output) attachFirst() (reader int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader > 0 {
		return 0, false
	}
	o.reader, o.read = 1, true
	return o.reader, true
}

// detach removes the reader, if it still is the reader. The number it returns is for
// unreadSince.
func (o *output) detach(reader int) (left int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != reader {
		return 0, false
	}
	o.reader++
	o.read = false
	o.changed.Broadcast()
	return o.reader, true
}

// hasReader reports whether a host reads.
func (o *output) hasReader() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read
}

// unread returns the number for unreadSince, if nobody reads.
func (o *output) unread() (left int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reader, !o.read
}

// unreadSince reports whether no reader has attached since detach returned left.
func (o *output) unreadSince(left int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reader == left
}

var errNotReader = errors.New("another reader has taken over")

// await waits until there is output to take. It returns false at the end of output.
func (o *output) await(reader int) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case o.reader != reader:
			return false, errNotReader
		case o.rings[0].Pending() || o.rings[1].Pending():
			return true, nil
		case o.rings[0].Closed() && o.rings[1].Closed():
			return false, nil
		}
		o.changed.Wait()
	}
}

// outputPart is a part of one ring.
type outputPart struct {
	ring int
	gap  int64 // bytes lost before it
	n    int
}

// take moves output to b.
func (o *output) take(reader int, b []byte) (outputPart, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != reader {
		return outputPart{}, errNotReader
	}
	o.turn = 1 - o.turn // alternate, so that neither ring starves
	if !o.rings[o.turn].Pending() {
		o.turn = 1 - o.turn
	}
	n, gap := o.rings[o.turn].Take(b)
	o.changed.Broadcast()
	return outputPart{ring: o.turn, gap: gap, n: n}, nil
}

// peek copies from a log at offset, and leaves it there.
func (o *output) peek(i int, b []byte, offset int64) outputPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.peekLocked(i, b, offset)
}

// peekLocked is peek with o.mu held.
func (o *output) peekLocked(i int, b []byte, offset int64) outputPart {
	if head := o.heads[i]; offset < int64(len(head)) {
		return outputPart{ring: i, n: copy(b, head[offset:])}
	}
	ring := &o.rings[i]
	from := max(offset, ring.Start())
	return outputPart{ring: i, gap: min(from, ring.End()) - offset, n: ring.Read(b, from)}
}

// awaitBeyond waits until an output is longer than the given offset, the outputs have
// ended, or d is over.
func (o *output) awaitBeyond(stdout, stderr int64, d time.Duration) {
	over := false
	timer := time.AfterFunc(d, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		over = true
		o.changed.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !over && o.rings[0].End() <= stdout && o.rings[1].End() <= stderr && !o.rings[0].Closed() {
		o.changed.Wait()
	}
}
