package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/sse"
)

// stream brings a stream to the caller, event by event.
func (x *exchange) stream(a *http.Response) bool {
	x.forgetBody()
	x.w.out.Begin(x.streamHead(x.w.out.Buf[:0], a.StatusCode, a.Header))
	x.watch.change(x.checkStopInStream)
	err := x.relay(a.Body)
	if errors.Is(err, io.EOF) {
		if err = x.endStream(); x.wireLost(err) {
			x.saveReplay()
		}
	} else {
		err = x.breakStream(a, err)
	}
	return err == nil && !x.c.q.Close
}

// checkStopInStream is the watch's check while a stream is under way. If the caller
// has gone it lets the call go on for readOnTime.
func (x *exchange) checkStopInStream(now time.Time) error {
	err := x.checkStop(now, x.lastHeard().Add(x.provider.IdleTimeout))
	if err != nil && isCallers(err) {
		x.watch.setCallerGone(err, now.Add(x.readOnTime(err)))
		return nil
	}
	return err
}

// readOnTime returns how long a stream is read on whose caller has gone.
func (x *exchange) readOnTime(why error) time.Duration {
	if x.wireLost(why) {
		return x.s.options.KeepReplay
	}
	return x.s.options.Drain
}

func (x *exchange) lastHeard() time.Time { return time.Unix(0, x.heard.Load()) }

func (x *exchange) streamHead(dst []byte, status int, header http.Header) []byte {
	dst = x.c.appendHead(dst, status, eventStream)
	dst = append(dst, "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"...)
	return append(x.appendDown(dst, header), "\r\n"...)
}

// appendDown appends the fields of the answer that are passed to the caller.
func (x *exchange) appendDown(dst []byte, header http.Header) []byte {
	dst = append(append(append(dst, "x-atoll-request-id: "...), x.id...), "\r\n"...)
	for name, values := range header {
		if !passedDown(name) {
			continue
		}
		for _, value := range values {
			if isPlain(value) && len(value) <= maxPassed && !strings.Contains(value, x.secret) {
				dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
			}
		}
	}
	return dst
}

// forgetBody frees the request's memory, after it was sent.
func (x *exchange) forgetBody() {
	if x.route.kind == routeAsk && x.ask.Stream {
		x.recording = recording{on: x.s.options.WireLost != nil, key: x.s.replays.key(x.caller, x.route, x.body), memory: membudget.Share{Budget: x.s.memory, MinBuffer: minRecording}}
		if x.recording.on {
			x.recording.inflight = x.s.replays.start(x.recording.key, x.c.net)
		}
	}
	x.body = nil
	x.memory.Free()
}

// relay relays until the end of the stream, which is io.EOF, or another error.
// What comes in one read is written at once, the head before it.
func (x *exchange) relay(body io.Reader) error {
	if err := x.flush(false); err != nil {
		return err
	}
	each := x.event
	for {
		n, err := x.readSome(body)
		if n > 0 {
			if err := x.w.split.Write(x.w.store[:n], each); err != nil {
				return err
			}
		}
		if left := x.watch.callerLeft(); left != nil {
			return left
		}
		if err != nil {
			return err
		}
		if err := x.flush(false); err != nil {
			return err
		}
	}
}

// readSome reads a piece of the answer into x.w.store.
func (x *exchange) readSome(body io.Reader) (int, error) {
	n, err := body.Read(x.w.store[:])
	if n > 0 {
		x.heard.Store(time.Now().UnixNano())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = reason(x.callContext, err)
	}
	return n, err
}

// event counts one event and passes it on.
func (x *exchange) event(event []byte) error {
	x.w.text = x.w.text[:0]
	data := sse.Data(x.w.text, event)
	if bytes.Contains(event, []byte(x.secret)) {
		return stop(502, "upstream_failed", "the upstream answered with something that must not leave", false)
	}
	verdict := dialect.Content
	if len(data) > 0 {
		verdict = x.w.meter.Event(data)
		if verdict == dialect.Content {
			x.stats.count(len(event))
		}
	}
	if verdict == dialect.UsageOnly && x.hidesCount() {
		return nil
	}
	x.w.out.Append(event)
	if x.recording.on {
		x.record(event)
	}
	return x.withinBudget()
}

// hidesCount reports whether the usage event was requested by the proxy and not
// by the caller.
func (x *exchange) hidesCount() bool { return !x.ask.IncludeUsage && x.route.shape == ask.Chat }

// withinBudget stops a stream that has used up what was reserved for it.
func (x *exchange) withinBudget() error {
	if x.reservation == nil {
		return nil
	}
	room := x.reservation.OutputRoom()
	if room < 0 || x.maxAnswerTokens() >= 0 && room >= x.maxAnswerTokens() || x.stats.minTokens() <= room {
		return nil
	}
	return stop(402, "budget_exceeded", x.reservation.Limit().String()+" is used up", false)
}

// flush writes what was gathered.
func (x *exchange) flush(last bool) error {
	if x.w.out.Len() == 0 && !last && x.stats.headSent {
		return nil
	}
	x.stats.headSent = true
	if err := x.c.write(x.w.out.Take(last)); err != nil {
		return &callerError{err}
	}
	return nil
}

// endStream sends what follows the last event, and the last chunk.
func (x *exchange) endStream() error {
	x.w.out.Append(x.w.split.Rest())
	return x.flush(true)
}

// breakStream ends a stream in the middle. A caller that is still there gets an
// error event of its dialect and may use the connection again: for HTTP the
// answer is complete. If it has gone, the answer is read on for its usage.
func (x *exchange) breakStream(a *http.Response, why error) error {
	if s, ok := errors.AsType[*stopError](why); ok {
		return x.sendStreamError(s.problem)
	}
	switch {
	case x.wireLost(why):
		x.readForReplay(a.Body, why)
	case isCallers(why):
		x.drain(a.Body, why)
	default:
		x.s.options.Logger.Warn("upstream", "error", why, "request", x.id)
		return x.sendStreamError(&dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the model's answer broke off"})
	}
	x.stats.status, x.stats.denied = 499, errGone.Error()
	return why
}

// wireLost reports whether the caller's wire was lost, rather than that the caller
// has gone.
func (x *exchange) wireLost(why error) bool {
	at, ok := errors.AsType[*callerError](why)
	return ok && x.s.options.WireLost != nil && x.s.options.WireLost(at.err)
}

func (x *exchange) sendStreamError(p *dialect.Problem) error {
	x.stats.status, x.stats.denied = p.Status, p.Code+": "+p.Message
	if x.dialect == dialect.Google {
		x.sendBareError(p)
	}
	x.w.text = x.dialect.AppendStreamError(x.w.text[:0], p, x.stats.events)
	x.w.out.Append(x.w.text)
	if err := x.flush(true); err != nil || !x.timeIsOver(time.Now()) {
		return err
	}
	return errGone
}

// drain reads on for a moment, as the usage event may be on its way already.
func (x *exchange) drain(body io.Reader, why error) {
	x.recording.on = false
	if x.watch.callerLeft() == nil {
		x.watch.continueUntil(why, time.Now().Add(x.s.options.Drain))
	}
	for x.stats.unsent < maxDrained {
		n, err := x.readSome(body)
		if n > 0 && x.w.split.Write(x.w.store[:n], x.countUnsent) != nil {
			return
		}
		if err != nil {
			x.stats.complete = errors.Is(err, io.EOF)
			return
		}
	}
}

// maxDrained bounds what is read of an answer whose caller has gone.
const maxDrained = 1 << 20
