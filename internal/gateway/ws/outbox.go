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

// outbox queues frames for a client. Adding never blocks. The writing goroutine
// exists only while frames are queued, so that an idle connection has only its
// reader.
type outbox struct {
	conn   *protocol.Conn
	limits *Limits
	meters *meters
	all    *atomic.Int64 // bytes in all outboxes, shared frames counted once

	mu      sync.Mutex
	queue   []queuedFrame
	bytes   int64 // queued, held, and being written
	writing bool
	closed  bool
	closing *closeFrame
	holding int           // barriers that the client has not acknowledged
	held    []queuedFrame // frames that wait for that
	seq     int64         // last event number of this connection, see the package comment
}

// sharedFrame is a frame for one or several clients.
type sharedFrame struct {
	data    []byte
	at      time.Time    // when its event was published; zero is not measured
	holders atomic.Int32 // number of outboxes that hold it
}

// queuedFrame is a frame in an outbox. With a number it is shared between
// connections and lacks its end, which differs.
type queuedFrame struct {
	*sharedFrame
	seq  int64
	then func() // called after it was written
}

type closeFrame struct {
	code   int
	reason string
}

// guaranteedBuffer is what a client may always leave unread, whatever other clients
// do.
const guaranteedBuffer = 1 << 20

// send queues a complete frame.
func (o *outbox) send(data []byte) { o.sendShared(&sharedFrame{data: data}) }

// sendShared queues a complete shared frame.
func (o *outbox) sendShared(p *sharedFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(queuedFrame{sharedFrame: p})
}

// sendEvent queues a shared event, which lacks its last brace.
func (o *outbox) sendEvent(p *sharedFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	o.put(queuedFrame{sharedFrame: p, seq: o.seq})
}

// hold keeps back everything except priority frames, until unhold is called as
// often.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding++
}

// sendPriority queues a frame before those that are held.
func (o *outbox) sendPriority(data []byte, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(queuedFrame{sharedFrame: &sharedFrame{data: data}, then: then}, &o.queue)
}

// sendBarrier queues a frame, and holds everything after it until the client has
// read it.
func (o *outbox) sendBarrier(data []byte) {
	o.hold()
	o.sendPriority(data, o.awaitPong)
}

// awaitPong releases held frames when the client has read what was written last,
// which its answer to a ping shows. A client that reads in one piece that a task
// was accepted and that it is over handles the second before the first, and waits
// forever.
//
// A client that does not answer in time stays connected: a ping whose own context
// ended while it was written would close the connection.
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

// unhold releases held frames.
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

// skipSeq skips a number, which shows the client that events were lost.
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

// dropSlow closes the connection of a slow client and drops what is queued.
func (o *outbox) dropSlow() {
	o.discard()
	o.closing = &closeFrame{protocol.ClosePolicy, "slow consumer"}
	o.meters.dropped.With("slow").Inc()
	time.AfterFunc(o.limits.Grace, o.conn.Drop)
}

// close closes the connection after what is queued.
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

// discard drops queued frames and accepts no more.
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
		batch, closing, more := o.next()
		if closing != nil {
			_ = o.conn.Close(closing.code, closing.reason) // the client may be gone
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

// batchBytes is about how many bytes are written at once, so that later frames do
// not wait long.
const batchBytes = 64 << 10

// next takes the next batch from the queue.
func (o *outbox) next() (batch []queuedFrame, closing *closeFrame, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue, o.writing = nil, false
		closing, o.closing = o.closing, nil
		return nil, closing, false
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
	clear(batch) // frees the frames while the rest of the array is in use
	if err != nil {
		o.discard()
		o.writing = false
	}
	return err == nil
}

// frames returns the bytes of queued frames, with their numbers.
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

// busy reports whether a write is in progress.
func (o *outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing
}
