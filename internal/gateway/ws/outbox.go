package ws

import (
	"context"
	"errors"
	"iter"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// outbox holds what a client has yet to read. Whoever puts something in never
// waits. The goroutine that writes exists only while there is something to write,
// so that a connection where nothing happens has only the one that reads.
type outbox struct {
	conn   *protocol.Conn
	limits *Limits
	meters *meters
	all    *atomic.Int64 // bytes in all outboxes, those that several share counted once

	mu      sync.Mutex
	queue   []queuedFrame
	bytes   int64 // in letters, and those on their way
	writing bool
	closed  bool
	closing *closeFrame
	holding int           // frames that the client is to take in before anything else
	held    []queuedFrame // what waits for that
	seq     int64         // of the events of this connection, see the package's comment
}

// sharedFrame is a frame that one or many clients are to read.
type sharedFrame struct {
	data    []byte
	at      time.Time    // when what it tells was published; zero for what is not counted
	holders atomic.Int32 // outboxes that it is in
}

// queuedFrame is a page in an outbox. One with a number is shared among connections and
// lacks its end, which differs.
type queuedFrame struct {
	*sharedFrame
	seq  int64
	then func() // called when it was written
}

type closeFrame struct {
	code   int
	reason string
}

// guaranteedBuffer is what a client may always leave unread, however much the others do.
const guaranteedBuffer = 1 << 20

// send puts a whole frame in.
func (o *outbox) send(data []byte) { o.sendShared(&sharedFrame{data: data}) }

// sendShared puts a page in that is a whole frame.
func (o *outbox) sendShared(p *sharedFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(queuedFrame{sharedFrame: p})
}

// sendEvent puts an event in that others are told too; it lacks its last brace.
func (o *outbox) sendEvent(p *sharedFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	o.put(queuedFrame{sharedFrame: p, seq: o.seq})
}

// hold keeps everything back but what goes ahead, until let is called as often.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding++
}

// sendPriority puts a frame in before what is held back.
func (o *outbox) sendPriority(data []byte, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(queuedFrame{sharedFrame: &sharedFrame{data: data}, then: then}, &o.queue)
}

// sendBarrier puts a frame in, and keeps everything after it back until the client has
// taken it in.
func (o *outbox) sendBarrier(data []byte) {
	o.hold()
	o.sendPriority(data, o.awaitPong)
}

// awaitPong lets go when the client has taken in what was written last. A client that
// is told in one piece that a task was accepted and that it is over takes the second
// before the first, and waits forever; it answers a ping when it has read so far.
//
// One that does not answer has had its time, and stays: the end of a ping's own time
// while it is being written would be the end of the connection.
func (o *outbox) awaitPong() {
	defer o.unhold()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		ctx, cancel := context.WithTimeout(context.Background(), o.limits.Ping)
		defer cancel()
		_ = o.conn.Ping(ctx)
	}()
	select {
	case <-answered:
	case <-time.After(o.limits.AckWait):
	}
}

// unhold lets go what was held back.
func (o *outbox) unhold() {
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
	o.queue, o.held = append(o.queue, o.held...), nil
	o.startWriter()
}

// skipSeq leaves a number out: clients know by it that they were not told everything.
func (o *outbox) skipSeq() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
}

func (o *outbox) put(l queuedFrame) {
	if o.holding > 0 {
		o.add(l, &o.held)
	} else {
		o.add(l, &o.queue)
	}
}

func (o *outbox) add(l queuedFrame, to *[]queuedFrame) {
	if o.closed {
		return
	}
	size := int64(len(l.data))
	o.bytes += size
	if l.holders.Add(1) == 1 {
		o.all.Add(size)
	}
	*to = append(*to, l)
	if o.bytes > o.limits.Buffered || o.bytes > guaranteedBuffer && o.all.Load() > o.limits.AllBuffered {
		o.dropSlow()
	}
	o.startWriter()
}

// dropSlow gives a slow client up. What it has not read is dropped.
func (o *outbox) dropSlow() {
	o.discard()
	o.closing = &closeFrame{protocol.ClosePolicy, "slow consumer"}
	o.meters.dropped.With("slow").Inc()
	time.AfterFunc(o.limits.Grace, o.conn.Drop)
}

// close closes the connection when everything before it is written.
func (o *outbox) close(code int, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.flush()
	o.closed = true
	o.closing = &closeFrame{code, reason}
	o.startWriter()
}

func (o *outbox) release(l queuedFrame) {
	size := int64(len(l.data))
	o.bytes -= size
	if l.holders.Add(-1) == 0 {
		o.all.Add(-size)
	}
}

// discard drops what is not on its way, and takes nothing more.
func (o *outbox) discard() {
	for _, l := range append(o.queue, o.held...) {
		o.release(l)
	}
	o.queue, o.held, o.closed = nil, nil, true
}

func (o *outbox) startWriter() {
	if o.writing {
		return
	}
	o.writing = true
	go o.writeLoop()
}

func (o *outbox) writeLoop() {
	for {
		batch, bye, more := o.next()
		if bye != nil {
			_ = o.conn.Close(bye.code, bye.reason) // whether it was heard changes nothing
		}
		if !more {
			return
		}
		if !o.writeBatch(batch) {
			o.conn.Drop()
			return
		}
	}
}

// batchBytes is how many bytes of letters are written at once, more or less: those
// that come meanwhile are not kept waiting by them for long.
const batchBytes = 64 << 10

// next takes out what is to be written.
func (o *outbox) next() (batch []queuedFrame, bye *closeFrame, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue, o.writing = nil, false
		bye, o.closing = o.closing, nil
		return nil, bye, false
	}
	n := 0
	for size := 0; n < len(o.queue) && size < batchBytes; n++ {
		size += len(o.queue[n].data)
	}
	batch, o.queue = o.queue[:n:n], o.queue[n:]
	return batch, nil, true
}

func (o *outbox) writeBatch(batch []queuedFrame) bool {
	err := o.conn.WriteAll(o.limits.Write, frames(batch))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.meters.dropped.With("stalled").Inc()
	}
	if err == nil {
		o.meters.written(batch)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range batch {
		o.release(l)
		if l.then != nil && err == nil {
			go l.then()
		}
	}
	clear(batch) // what is written is not kept by those behind it
	if err != nil {
		o.discard()
		o.writing = false
	}
	return err == nil
}

// frames are letters as they are sent.
func frames(batch []queuedFrame) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var scratch []byte
		for _, l := range batch {
			data := l.data
			if l.seq > 0 {
				scratch = append(append(scratch[:0], data...), `,"seq":`...)
				scratch = append(strconv.AppendInt(scratch, l.seq, 10), '}')
				data = scratch
			}
			if !yield(data) {
				return
			}
		}
	}
}

// busy reports whether something is being written.
func (o *outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing
}
