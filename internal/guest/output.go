package guest

import (
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// output is what a process wrote: two rings with one reader at a time.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	rings   [2]ring // stdout, stderr
	reader  int     // counts the readers: only the last one may take
	turn    int     // the ring that was looked at last
}

func newOutput() *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// The frames of the two rings.
var outputFrames = [2]wire.FrameType{wire.FrameStdout, wire.FrameStderr}

// write appends b to ring i, waiting for the reader where there is no room.
func (o *output) write(i int, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(b) > 0 {
		n := o.rings[i].put(b)
		if n == 0 {
			o.changed.Wait()
			continue
		}
		b = b[n:]
		o.changed.Broadcast()
	}
}

// close says that nothing will be added to ring i.
func (o *output) close(i int) { o.update(func() { o.rings[i].closed = true }) }

// loosen lets the process run on when nobody will read its output.
func (o *output) loosen() {
	o.update(func() { o.rings[0].loose, o.rings[1].loose = true, true })
}

// totals are the bytes written so far.
func (o *output) totals() (stdout, stderr int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rings[0].end, o.rings[1].end
}

func (o *output) update(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	o.changed.Broadcast()
}

// attach makes the caller the reader, from the given offsets on. It returns
// the number by which it takes.
func (o *output) attach(stdout, stderr int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rings[0].rewind(stdout)
	o.rings[1].rewind(stderr)
	o.reader++
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
	o.changed.Broadcast()
	return o.reader, true
}

// unread reports whether nobody has attached since detach.
func (o *output) unread(left int) bool {
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
		case o.rings[0].pending() || o.rings[1].pending():
			return true, nil
		case o.rings[0].closed && o.rings[1].closed:
			return false, nil
		}
		o.changed.Wait()
	}
}

// piece is a part of one ring, on its way to the wire.
type piece struct {
	ring int
	gap  int64 // bytes lost before it
	n    int
}

// take moves to b what await has announced.
func (o *output) take(reader int, b []byte) (piece, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != reader {
		return piece{}, errNotReader
	}
	o.turn = 1 - o.turn // so that neither ring starves the other
	if !o.rings[o.turn].pending() {
		o.turn = 1 - o.turn
	}
	n, gap := o.rings[o.turn].take(b)
	o.changed.Broadcast()
	return piece{ring: o.turn, gap: gap, n: n}, nil
}
