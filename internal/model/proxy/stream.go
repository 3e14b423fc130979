package proxy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/h1"
	"github.com/atoll-run/atoll/internal/model/proxy/sse"
)

// maxGathered is how much of a stream is gathered before it is written, if it
// comes faster than that.
const maxGathered = 16 << 10

// stream brings a stream to the caller, event by event.
func (x *exchange) stream(l *link, a *h1.Response) bool {
	x.forgetBody()
	x.w.out.Begin(x.streamHead(x.w.out.Buf[:0], a))
	body := l.reader.ResponseBody(a.Length)
	err := x.relay(l, &body)
	ok := errors.Is(err, io.EOF)
	if ok {
		if err = x.endStream(); x.isBroken(err) {
			x.keepWhole()
		}
	}
	switch {
	case ok && !a.Close:
		x.place.put(l)
	case ok:
		l.discard()
	default:
		err = x.cutStream(l, &body, err)
		l.discard()
	}
	return err == nil && !x.c.q.Close
}

func (x *exchange) streamHead(dst []byte, a *h1.Response) []byte {
	dst = x.c.appendHead(dst, a.Status, eventStream)
	dst = append(dst, "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"...)
	return append(x.appendDown(dst, a), "\r\n"...)
}

// appendDown appends the headers of the answer that the caller may see.
func (x *exchange) appendDown(dst []byte, a *h1.Response) []byte {
	dst = append(append(append(dst, "x-atoll-request-id: "...), x.id...), "\r\n"...)
	for i := range a.Fields {
		if f := &a.Fields[i]; passedDown(f) && isPlain(f.Value) && len(f.Value) <= maxPassed && !bytes.Contains(f.Value, []byte(x.secret)) {
			dst = append(append(append(append(dst, f.Name...), ": "...), f.Value...), "\r\n"...)
		}
	}
	return dst
}

// forgetBody gives the request's memory back: it was sent.
func (x *exchange) forgetBody() {
	if x.route.kind == asks && x.ask.Stream {
		x.kept = kept{wanted: x.s.options.Broken != nil, key: x.s.cuts.key(x.caller, x.route, x.body), memory: membudget.Share{Budget: x.s.memory, Least: keptPiece}}
		if x.kept.wanted {
			x.kept.flight = x.s.cuts.depart(x.kept.key, x.c.net)
		}
	}
	x.body = nil
	x.memory.Free()
}

// relay relays until the end of the stream, which is io.EOF, or another error.
func (x *exchange) relay(l *link, body *h1.Body) error {
	o := &x.s.options
	heard := time.Now()
	if err := l.SetReadDeadline(heard.Add(o.Tick)); err != nil {
		return err
	}
	each := x.event
	for {
		piece, err := body.Next()
		switch {
		case err == nil:
			x.account.quiet = false
			if err := x.w.split.Write(piece, each); err != nil {
				return err
			}
			if x.w.out.Len() < maxGathered && body.Ready() {
				continue
			}
			if err := x.flush(false); err != nil {
				return err
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			if heard, err = x.tick(l, heard); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// tick looks around while the stream is silent, or simply every so often.
func (x *exchange) tick(l *link, heard time.Time) (time.Time, error) {
	o := &x.s.options
	now := time.Now()
	if !x.account.quiet {
		heard = now
	}
	x.account.quiet = true
	if err := x.flush(false); err != nil {
		return heard, err
	}
	if err := x.lookAround(heard.Add(x.place.IdleTimeout)); err != nil {
		return heard, err
	}
	return heard, l.SetReadDeadline(now.Add(o.Tick))
}

// event counts one event and passes it on.
func (x *exchange) event(event []byte) error {
	x.w.text = x.w.text[:0]
	data := sse.Data(x.w.text, event)
	if bytes.Contains(event, []byte(x.secret)) {
		return stop(502, "upstream_failed", "the upstream answered with something that must not leave", false)
	}
	verdict := dialect.Pass
	if len(data) > 0 {
		verdict = x.w.meter.Event(data)
		if verdict == dialect.Pass {
			x.account.count(len(event))
		}
	}
	if verdict == dialect.Count && x.hidesCount() {
		return nil
	}
	x.w.out.Append(event)
	if x.kept.wanted {
		x.keep(event)
	}
	return x.withinBudget()
}

// hidesCount reports whether the count of a stream was asked for by us and not
// by the caller.
func (x *exchange) hidesCount() bool { return !x.ask.IncludeUsage && x.route.shape == ask.Chat }

// withinBudget stops a stream that has used up what was reserved for it.
func (x *exchange) withinBudget() error {
	if x.reservation == nil {
		return nil
	}
	room := x.reservation.OutputRoom()
	if room < 0 || x.wanted() >= 0 && room >= x.wanted() || x.account.least() <= room {
		return nil
	}
	return stop(402, "budget_exceeded", x.reservation.Limit().String()+" is used up", false)
}

// flush writes what was gathered.
func (x *exchange) flush(last bool) error {
	if x.w.out.Len() == 0 && !last && x.account.headSent {
		return nil
	}
	x.account.headSent = true
	if err := x.c.write(x.w.out.Take(last)); err != nil {
		return &callerError{err}
	}
	return nil
}

// callerError is a failure to write to the caller.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// Unwrap makes the reason visible.
func (e *callerError) Unwrap() error { return e.err }

// endStream passes on what may follow the last event, and the end.
func (x *exchange) endStream() error {
	x.w.out.Append(x.w.split.Rest())
	return x.flush(true)
}

// cutStream ends a stream in the middle. If the caller is still there it is told
// why, in its dialect, and may ask again over the same connection: for it the
// answer is whole. If it has gone, the answer is read on for the count.
func (x *exchange) cutStream(l *link, body *h1.Body, why error) error {
	if s, ok := errors.AsType[*stopError](why); ok {
		return x.tellCut(s.problem)
	}
	_, atCaller := errors.AsType[*callerError](why)
	switch {
	case x.isBroken(why):
		x.keepCut(l, body)
	case atCaller || errors.Is(why, errGone):
		x.drain(l, body)
	default:
		x.s.options.Logger.Warn("upstream", "error", why, "request", x.id)
		return x.tellCut(&dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the model's answer broke off"})
	}
	x.account.status, x.account.denied = 499, errGone.Error()
	return why
}

// isBroken reports whether the caller's wire broke, rather than that the caller
// has gone.
func (x *exchange) isBroken(why error) bool {
	at, ok := errors.AsType[*callerError](why)
	return ok && x.s.options.Broken != nil && x.s.options.Broken(at.err)
}

func (x *exchange) tellCut(p *dialect.Problem) error {
	x.account.status, x.account.denied = p.Status, p.Code+": "+p.Message
	x.w.text = x.dialect.AppendCut(x.w.text[:0], p, x.account.events)
	x.w.out.Append(x.w.text)
	if err := x.flush(true); err != nil || !x.timeIsOver(time.Now()) {
		return err
	}
	return errGone
}

// drain reads on for a moment: often the count is on its way already.
func (x *exchange) drain(l *link, body *h1.Body) {
	x.kept.wanted = false
	_ = l.SetReadDeadline(time.Now().Add(x.s.options.Drain))
	for x.account.absorbed < maxDrained {
		piece, err := body.Next()
		if err == nil {
			err = x.w.split.Write(piece, x.absorb)
		}
		if err != nil {
			x.account.complete = errors.Is(err, io.EOF)
			return
		}
	}
}

// maxDrained bounds what is read for nobody.
const maxDrained = 1 << 20
