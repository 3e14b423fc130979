package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxTransfers bounds the operations on files that one machine has under
	// way, beside the short ones that are questions. Further ones wait.
	maxTransfers = 32
	// requestRoom is what a request about a file usually fits in.
	requestRoom = 512
	// framePatience is how long a guest may be silent in the middle of one.
	framePatience = 30 * time.Second
	// forEver is patience without an end.
	forEver = math.MaxInt64
)

// talk is an operation that takes more than a question and an answer.
type talk struct {
	machine  *Machine
	ctx      context.Context
	live     *live
	stream   net.Conn
	frames   *wire.Reader
	patience time.Duration
	hangUp   func()      // ends the talk, whatever its state; may be called twice
	forget   func() bool // makes it independent of ctx
	line     *line       // nil: a stream of live
	freed    atomic.Pointer[time.Timer]
	over     atomic.Bool // nothing waits any more
	given    atomic.Bool // up by this side: whatever fails from now on is its own doing
	whole    bool        // nothing is left to send
	settled  bool        // everything was said and heard, so that line can go on
}

// opening is how a talk begins.
type opening struct {
	link     *link
	direct   bool  // a direct wire would be better
	live     *live // instead of link: this wire and no other
	request  *wire.Request
	slots    chan struct{} // nil: the machine's transfers
	follow   []byte        // sent in one go with the request
	patience time.Duration // how long the guest may be silent; 0: framePatience
}

// talk begins an operation. The caller hangs up.
func (m *Machine) talk(ctx context.Context, o *opening) (*talk, error) {
	slots := o.slots
	if slots == nil {
		slots = m.transfers
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, ErrClosed
	}
	t := &talk{machine: m, ctx: ctx, patience: o.patience}
	if t.patience == 0 {
		t.patience = framePatience
	}
	if err := t.begin(o); err != nil {
		<-slots
		return nil, err
	}
	t.forget = context.AfterFunc(ctx, t.free)
	t.hangUp = sync.OnceFunc(func() {
		t.given.Store(true)
		t.end(t.forget())
		<-slots
	})
	if err := t.say(o); err != nil {
		t.hangUp()
		return nil, err
	}
	return t, nil
}

// begin opens the stream, or takes a direct wire for one.
func (t *talk) begin(o *opening) error {
	if o.direct {
		if t.line = t.machine.lines.get(t.ctx); t.line != nil {
			t.live, t.stream, t.frames = t.line.parent, t.line.conn, t.line.frames
			return nil
		}
	}
	var err error
	if t.live = o.live; t.live == nil {
		if t.live, err = o.link.get(t.ctx); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(t.ctx, func() { t.freed.Store(t.watchdog(0)) })
	defer stop()
	if t.stream, err = t.live.Open(); err != nil {
		t.over.Store(true)
		return t.failed(err)
	}
	t.frames = wire.NewReader(t.stream)
	return nil
}

// end ends the stream. Undisturbed means that no cancellation got at it.
func (t *talk) end(undisturbed bool) {
	switch {
	case t.line == nil:
		_ = t.stream.SetDeadline(past)
		dog := t.watchdog(0)
		t.stream.Close()
		t.over.Store(true)
		callOff(dog)
		callOff(t.freed.Load())
	case t.settled && undisturbed:
		t.machine.lines.put(t.line)
	default:
		t.machine.lines.discard(t.line)
	}
}

// say sends the request and what follows it, in one message.
func (t *talk) say(o *opening) error {
	message := bytes.NewBuffer(make([]byte, 0, requestRoom+len(o.follow)))
	if err := t.live.request(message, o.request); err != nil {
		return t.failed(err)
	}
	message.Write(o.follow)
	t.renew(t.stream.SetWriteDeadline)
	_, err := t.stream.Write(message.Bytes())
	return t.failed(err)
}

// outlive lets the talk go on when its context has ended, for as long as it
// takes.
func (t *talk) outlive() {
	t.forget()
	t.ctx, t.patience = t.machine.ctx, forEver
	t.renew(t.stream.SetDeadline)
}

// free makes whoever waits for the guest wait no longer.
func (t *talk) free() {
	_ = t.stream.SetDeadline(past)
	if t.line == nil {
		t.freed.Store(t.watchdog(0))
	}
}

// freePatience is how long after its deadline something may still wait.
const freePatience = time.Second

// watchdog closes the wire if it is not stopped in time. A guest can hold the
// multiplexer in the middle of a frame, where no deadline of a stream counts.
func (t *talk) watchdog(patience time.Duration) *time.Timer {
	if t.line != nil || patience > math.MaxInt64-freePatience {
		return nil
	}
	return time.AfterFunc(patience+freePatience, func() {
		if !t.over.Load() {
			_ = t.live.Close()
		}
	})
}

func callOff(dog *time.Timer) {
	if dog != nil {
		dog.Stop()
	}
}

// listen reads with f, for as long as the guest may be silent.
func (t *talk) listen(f func() error) error {
	t.hurry()
	dog := t.watchdog(t.patience)
	defer callOff(dog)
	return f()
}

// hurry renews the guest's time to answer.
func (t *talk) hurry() { t.renew(t.stream.SetReadDeadline) }

// renew sets a deadline. Whoever cancelled must not be overruled by it.
func (t *talk) renew(set func(time.Time) error) {
	_ = set(time.Now().Add(t.patience))
	if t.ctx.Err() != nil {
		_ = set(past)
	}
}

// Deadlines that free whoever waits, and that let them wait for ever.
var (
	past       = time.Unix(1, 0)
	noDeadline = time.Time{}
)

// next reads a frame. A guest that reports an error ends the talk.
func (t *talk) next() (wire.Frame, error) {
	var frame wire.Frame
	err := t.listen(func() (err error) { frame, err = t.frames.Frame(); return err })
	if err != nil {
		return frame, t.failed(err)
	}
	if frame.Type == wire.FrameError {
		return frame, t.refused(frame)
	}
	return frame, nil
}

// refused is the error in a frame, after which the guest awaits no more.
func (t *talk) refused(frame wire.Frame) error {
	err := t.machine.guestSays(t.live, frame)
	t.settled = t.whole && !errors.Is(err, wire.ErrProtocol)
	return err
}

// answer reads a frame that must be of a certain type into v.
func (t *talk) answer(kind wire.FrameType, v any) error {
	frame, err := t.next()
	if err != nil {
		return err
	}
	if frame.Type != kind {
		return t.odd(frame)
	}
	return t.decode(frame, v)
}

func (t *talk) decode(frame wire.Frame, v any) error {
	if err := frame.Decode(v); err != nil {
		return t.machine.cut(t.live, err)
	}
	return nil
}

// odd ends the wire over a frame that has no place here.
func (t *talk) odd(frame wire.Frame) error {
	return t.lies("frame %d is out of place", frame.Type)
}

// lies ends the wire of a guest that said what cannot be true.
func (t *talk) lies(format string, args ...any) error {
	return t.machine.cut(t.live, fmt.Errorf("%w: "+format, append([]any{wire.ErrProtocol}, args...)...))
}

// failed finds the reason for a failure of the stream.
func (t *talk) failed(err error) error {
	if err == nil {
		return nil
	}
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	if t.given.Load() {
		return net.ErrClosed
	}
	if stop, ok := errors.AsType[*wire.Interrupt](err); ok {
		if stop.Type == wire.FrameError {
			return t.refused(stop.Frame)
		}
		return t.odd(stop.Frame)
	}
	if t.line != nil {
		return t.machine.lostLine(t.line, err)
	}
	return t.machine.because(t.live, err)
}

// lostLine is because for a direct wire, which breaks alone.
func (m *Machine) lostLine(l *line, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok { // it never left this side
		return reported(e)
	}
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(err, wire.ErrProtocol):
		return m.fail(err)
	case l.parent.alive():
		m.noteBreak(err)
	}
	return lost(err)
}

// twice performs an operation that does no harm when it is repeated once more
// if its wire turned out to be broken.
func twice(ctx context.Context, f func() error) error {
	err := f()
	if errors.Is(err, ErrLost) && ctx.Err() == nil {
		err = f()
	}
	return err
}
