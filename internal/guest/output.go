package guest

import (
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/replay"
)

// Of each output of a process in the background these bytes stay: the first,
// and the last.
const (
	maxLogHead = 32 << 10
	maxLogTail = 128 << 10
)

// output is what a process wrote: two rings with one reader at a time.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	rings   [2]replay.Ring // stdout, stderr
	heads   [2][]byte      // of a log: the first bytes
	log     bool           // nobody reads: keep what fits
	reader  int            // counts the readers: only the last one may take
	read    bool           // there is a reader
	turn    int            // the ring that was looked at last
}

func newOutput() *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// newLog returns an output for a process in the background.
func newLog() *output {
	o := newOutput()
	o.log = true
	for i := range o.rings {
		o.rings[i].Loose, o.rings[i].Size = true, maxLogTail
	}
	return o
}

// discardWhenFull lets a process run on whose output nobody will read.
func (o *output) discardWhenFull() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].Loose, o.rings[1].Loose = true, true
	o.changed.Broadcast()
}

// The frames of the two rings.
var outputFrames = [2]wire.FrameType{wire.FrameStdout, wire.FrameStderr}

// write appends b to ring i, waiting for the reader where there is no room.
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

// close says that nothing will be added.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].Close()
	o.rings[1].Close()
	o.changed.Broadcast()
}

// totals are the bytes written so far.
func (o *output) totals() (stdout, stderr int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rings[0].End(), o.rings[1].End()
}

// attach makes the caller the reader, from the given offsets on. It returns
// the number by which it takes.
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

// detach sends the reader away, if it still is the reader. The number it
// returns is for unread.
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

// hasReader reports whether there is a reader.
func (o *output) hasReader() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read
}

// detachAny sends away whoever reads. The number it returns is for unread.
func (o *output) detachAny() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reader++
	o.read = false
	o.changed.Broadcast()
	return o.reader
}

// readers is the number for unread, as long as there was no reader.
func (o *output) readers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reader
}

// unreadSince reports whether nobody has attached since detach.
func (o *output) unreadSince(left int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reader == left
}

var errNotReader = errors.New("another reader has taken over")

// await waits until there is something to take. It returns false when all was
// taken that will ever come.
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

// outputPart is a part of one ring, on its way to the wire.
type outputPart struct {
	ring int
	gap  int64 // bytes lost before it
	n    int
}

// take moves to b what await has announced.
func (o *output) take(reader int, b []byte) (outputPart, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != reader {
		return outputPart{}, errNotReader
	}
	o.turn = 1 - o.turn // so that neither ring starves the other
	if !o.rings[o.turn].Pending() {
		o.turn = 1 - o.turn
	}
	n, gap := o.rings[o.turn].Take(b)
	o.changed.Broadcast()
	return outputPart{ring: o.turn, gap: gap, n: n}, nil
}

// peek copies from a log at offset, without taking.
func (o *output) peek(i int, b []byte, offset int64) outputPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	if head := o.heads[i]; offset < int64(len(head)) {
		return outputPart{ring: i, n: copy(b, head[offset:])}
	}
	ring := &o.rings[i]
	from := max(offset, ring.Start())
	return outputPart{ring: i, gap: min(from, ring.End()) - offset, n: ring.Read(b, from)}
}

// awaitBeyond waits until an output has grown beyond the given offsets, nothing
// more will come, or the time is over.
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
