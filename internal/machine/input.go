package machine

import (
	"io"
	"net"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/replay"
)

// input is what a command reads: it is sent as it comes, and enough is kept to
// go on over another wire. A nil input is empty.
type input struct {
	from    io.Reader
	begin   sync.Once // nothing is read before it can be sent
	mu      sync.Mutex
	changed *sync.Cond
	ring    replay.Ring
	sender  int // counts the senders: only the last one may take
	stopped bool
}

func newInput(from io.Reader) *input {
	if from == nil {
		return nil
	}
	in := &input{from: from}
	in.changed = sync.NewCond(&in.mu)
	return in
}

// pull reads the input into the ring, and waits while that is full.
func (in *input) pull() {
	buf := make([]byte, wire.MaxFrame/2)
	for {
		n, err := in.from.Read(buf)
		if !in.put(buf[:n]) {
			return
		}
		if err != nil {
			in.update(in.ring.Close)
			return
		}
	}
}

func (in *input) put(b []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(b) > 0 && !in.stopped {
		n := in.ring.Put(b)
		if n == 0 {
			in.changed.Wait()
			continue
		}
		b = b[n:]
		in.changed.Broadcast()
	}
	return !in.stopped
}

func (in *input) update(f func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	f()
	in.changed.Broadcast()
}

// stop ends all sending. The Read under way, if any, ends by itself.
func (in *input) stop() {
	if in != nil {
		in.update(func() { in.stopped = true; in.sender++ })
	}
}

// send sends the input over stream, from offset on, and returns at once.
func (in *input) send(stream net.Conn, offset int64) {
	if in == nil {
		return
	}
	in.begin.Do(func() { go in.pull() })
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sender++
	in.ring.Rewind(offset)
	in.changed.Broadcast()
	go in.push(stream, in.sender)
}

// push writes frames until the input has ended or another sender took over.
func (in *input) push(stream net.Conn, sender int) {
	buf := make([]byte, wire.HeaderSize+wire.MaxFrame/2)
	for {
		n, ok := in.next(sender, buf[wire.HeaderSize:])
		if !ok {
			return
		}
		kind := wire.FrameStdin
		if n == 0 {
			kind = wire.FrameStdinEOF
		}
		wire.PutHeader(buf, kind, n)
		if _, err := stream.Write(buf[:wire.HeaderSize+n]); err != nil || n == 0 {
			return
		}
	}
}

// next waits for input. At its end it returns 0 bytes, and false when there is
// nothing to do any more for this sender.
func (in *input) next(sender int, b []byte) (int, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.sender == sender {
		if in.ring.Pending() {
			n, gap := in.ring.Take(b)
			in.changed.Broadcast()
			return n, gap == 0
		}
		if in.ring.Closed() {
			return 0, true
		}
		in.changed.Wait()
	}
	return 0, false
}
