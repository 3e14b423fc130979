package ws

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/protocol"
)

// outbox holds what a client has yet to read. Whoever puts something in never
// waits. The goroutine that writes exists only while there is something to write,
// so that a connection where nothing happens has only the one that reads.
type outbox struct {
	conn   *protocol.Conn
	limits *Limits
	all    *atomic.Int64 // bytes in all outboxes

	mu      sync.Mutex
	letters []letter
	bytes   int64 // in letters, and the one on its way
	writing bool
	closed  bool
	bye     *farewell
	holding int      // calls whose answer comes before everything else
	held    []letter // what waits for those answers
	seq     int64    // of the events of this connection, see the package's comment
}

// letter is a frame. One with a number is shared among connections and lacks its
// end, which differs.
type letter struct {
	data []byte
	seq  int64
	then func() // called when it was written
}

type farewell struct {
	code   int
	reason string
}

// largeShare is what a client may always leave unread, however much the others do.
const largeShare = 1 << 20

// frame puts a whole frame in.
func (o *outbox) frame(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(letter{data: data})
}

// event puts an event in that others are told too; data lacks its last brace.
func (o *outbox) event(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	o.put(letter{data: data, seq: o.seq})
}

// hold keeps everything back but what goes ahead, until let is called as often.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding++
}

// ahead puts a frame in before what is held back.
func (o *outbox) ahead(data []byte, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(letter{data: data, then: then}, &o.letters)
}

// let lets go what was held back.
func (o *outbox) let() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holding--; o.holding == 0 {
		o.flush()
	}
}

func (o *outbox) flush() {
	if len(o.held) == 0 {
		return
	}
	o.letters, o.held = append(o.letters, o.held...), nil
	o.write()
}

// settle lets go when the client has taken in what was written last. A client that
// is told in one piece that a task was accepted and that it is over takes the second
// before the first, and waits forever; it answers a ping when it has read so far.
func (o *outbox) settle() {
	defer o.let()
	ctx, cancel := context.WithTimeout(context.Background(), o.limits.Settle)
	defer cancel()
	_ = o.conn.Ping(ctx) // a client that does not answer has had its time
}

func (o *outbox) put(l letter) {
	if o.holding > 0 {
		o.add(l, &o.held)
	} else {
		o.add(l, &o.letters)
	}
}

func (o *outbox) add(l letter, to *[]letter) {
	if o.closed {
		return
	}
	size := int64(len(l.data))
	o.bytes += size
	all := o.all.Add(size)
	*to = append(*to, l)
	if o.bytes > o.limits.Buffered || all > o.limits.AllBuffered && o.bytes > largeShare {
		o.abandon()
	}
	o.write()
}

// abandon gives a slow client up. What it has not read is dropped.
func (o *outbox) abandon() {
	o.discard()
	o.bye = &farewell{protocol.ClosePolicy, "slow consumer"}
	time.AfterFunc(o.limits.Grace, o.conn.Drop)
}

// discard drops what is not on its way, and takes nothing more.
func (o *outbox) discard() {
	for _, l := range append(o.letters, o.held...) {
		o.release(l)
	}
	o.letters, o.held, o.closed = nil, nil, true
}

// leave closes the connection when everything before it is written.
func (o *outbox) leave(code int, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.flush()
	o.closed = true
	o.bye = &farewell{code, reason}
	o.write()
}

func (o *outbox) release(l letter) {
	size := int64(len(l.data))
	o.bytes -= size
	o.all.Add(-size)
}

func (o *outbox) write() {
	if o.writing {
		return
	}
	o.writing = true
	go o.drain()
}

func (o *outbox) drain() {
	var scratch []byte
	for {
		l, bye, more := o.next()
		if bye != nil {
			_ = o.conn.Close(bye.code, bye.reason) // whether it was heard changes nothing
		}
		if !more {
			return
		}
		data := l.data
		if l.seq > 0 {
			scratch = append(scratch[:0], l.data...)
			scratch = append(scratch, `,"seq":`...)
			scratch = append(strconv.AppendInt(scratch, l.seq, 10), '}')
			data = scratch
		}
		if !o.send(l, data) {
			o.conn.Drop()
			return
		}
	}
}

// next takes out what is to be written.
func (o *outbox) next() (l letter, bye *farewell, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.letters) == 0 {
		o.letters, o.writing = nil, false
		bye, o.bye = o.bye, nil
		return letter{}, bye, false
	}
	l = o.letters[0]
	o.letters[0] = letter{}
	o.letters = o.letters[1:]
	return l, nil, true
}

func (o *outbox) send(l letter, data []byte) bool {
	ctx, cancel := context.WithTimeout(context.Background(), o.limits.Write)
	defer cancel()
	err := o.conn.Write(ctx, data)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(l)
	if err != nil {
		o.discard()
		o.writing = false
	} else if l.then != nil {
		go l.then()
	}
	return err == nil
}

// busy reports whether something is being written.
func (o *outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing
}
