package proxy

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/h1"
)

// maxKeys is how many keys are tried for one request.
const maxKeys = 3

// headPatience is how long the rest of an upstream's head may take.
const headPatience = 30 * time.Second

// call asks the upstream and brings its answer to the caller.
func (x *exchange) call() bool {
	var a h1.Response
	l, err := x.send(&a)
	if err != nil {
		return x.fail(err)
	}
	x.account.firstByte = time.Since(x.start)
	x.account.status, x.account.answered = a.Status, a.Status
	if a.Status == 200 && contentType(a.Get("content-type")) == eventStream {
		return x.stream(l, &a)
	}
	return x.wholeAnswer(l, &a)
}

// stopError is a reason to end a request that is under way.
type stopError struct{ problem *dialect.Problem }

func (e *stopError) Error() string { return e.problem.Message }

// errGone is a caller that does not wait for its answer any more.
var errGone = errors.New("the caller has gone")

func stop(status int, code, message string, retry bool) error {
	return &stopError{&dialect.Problem{Status: status, Code: code, Message: message, Retry: retry}}
}

// fail answers a request whose answer has not begun.
func (x *exchange) fail(err error) bool { return x.refuse(x.problemOf(err)) }

// problemOf says what a failure is to the caller.
func (x *exchange) problemOf(err error) *dialect.Problem {
	if s, ok := errors.AsType[*stopError](err); ok {
		return s.problem
	}
	if _, atCaller := errors.AsType[*callerError](err); atCaller || errors.Is(err, errGone) {
		return hangUp
	}
	x.s.options.Logger.Warn("upstream", "error", err, "request", x.id)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &dialect.Problem{Status: 504, Code: "upstream_timeout", Message: "the model did not answer in time", Retry: true}
	}
	return &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the model cannot be reached at the moment", Retry: true}
}

// send sends the request, with another key if one is refused, and reads the head
// of the answer.
func (x *exchange) send(a *h1.Response) (*link, error) {
	for try := 1; ; try++ {
		key, err := x.keys().Pick()
		if err != nil {
			return nil, stop(503, "upstream_failing", err.Error()+": it is left alone for a moment", true)
		}
		x.secret = key.Value.Reveal()
		l, err := x.attempt(a)
		if err != nil {
			if isUpstreams(err) {
				key.Failed(0)
			}
			return nil, err
		}
		switch {
		case a.Status < 400:
			key.Worked()
			return l, nil
		case a.Status == 401 || a.Status == 403 || a.Status == 429 || a.Status >= 500:
			if another := key.Failed(a.Status); !another || try == maxKeys || a.Status >= 500 {
				return l, nil
			}
		default:
			return l, nil
		}
		l.discard()
	}
}

// isUpstreams tells the failures of the upstream from reasons of ours to stop,
// and from callers that left. That it is silent for long is one of the former.
func isUpstreams(err error) bool {
	if s, ok := errors.AsType[*stopError](err); ok {
		return s.problem.Code == "upstream_timeout"
	}
	_, atCaller := errors.AsType[*callerError](err)
	return !atCaller && !errors.Is(err, errGone)
}

// attempt sends the request once.
func (x *exchange) attempt(a *h1.Response) (*link, error) {
	l, err := x.place.get(x.s.ctx)
	if err != nil {
		return nil, err
	}
	x.sent = true
	err = x.write(l)
	if err == nil {
		err = x.await(l, a)
	}
	if err != nil {
		l.discard()
		return nil, err
	}
	return l, nil
}

// write writes the request. A body that is large is not copied.
func (x *exchange) write(l *link) error {
	w := x.w
	w.head = x.appendHead(w.head[:0])
	if err := l.allowWrites(x.s.options.WriteTimeout); err != nil {
		return err
	}
	if len(x.body) <= maxJoined {
		w.head = x.ask.Append(w.head, x.body)
		_, err := l.Write(w.head)
		return err
	}
	w.pieces = x.ask.Pieces(append(w.pieces[:0], w.head), x.body)
	defer clear(w.pieces)
	return l.writePieces(w.pieces)
}

// appendHead appends the head of the request. All of it is ours, but for the
// three fields that appendPassed takes over.
func (x *exchange) appendHead(dst []byte) []byte {
	u := x.place
	dst = append(append(append(dst, x.route.method...), ' '), u.prefix...)
	dst = append(append(dst, x.route.upstream...), query(x.c.q.Target)...)
	dst = append(append(append(dst, " HTTP/1.1\r\nHost: "...), u.host...), "\r\n"...)
	if u.Header == "x-api-key" {
		dst = append(append(dst, "x-api-key: "...), x.secret...)
	} else {
		dst = append(append(dst, "Authorization: Bearer "...), x.secret...)
	}
	dst = append(dst, "\r\nUser-Agent: atoll\r\nAccept-Encoding: identity\r\nAccept: application/json, text/event-stream\r\n"...)
	if !u.Stranger {
		dst = x.caller.headers.append(dst, x.id, x.endUser())
	}
	dst = appendPassed(dst, &x.c.q)
	if x.route.kind == asks {
		dst = append(dst, "Content-Type: application/json\r\n"...)
		dst = h1.AppendLength(dst, x.ask.Grown(len(x.body)))
	}
	return append(dst, "\r\n"...)
}

// await waits for the head of the answer, and looks around while it does.
func (x *exchange) await(l *link, a *h1.Response) error {
	o := &x.s.options
	limit := time.Now().Add(x.place.HeaderTimeout)
	for {
		err := l.reader.ReadResponse(a, x.route.method, h1.Patience{First: o.Tick, Rest: headPatience})
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || l.reader.Buffered() > 0 {
			return err
		}
		if err := x.lookAround(limit); err != nil {
			return err
		}
	}
}

// lookAround says whether there is a reason to stop waiting.
func (x *exchange) lookAround(limit time.Time) error {
	now := time.Now()
	switch {
	case x.s.ctx.Err() != nil:
		return stop(503, "shutting_down", "the proxy is being stopped", true)
	case x.timeIsOver(now):
		return stop(403, "deadline", "the run's time is over", false)
	case now.After(x.end):
		return stop(504, "deadline", "the answer took longer than is allowed", false)
	case now.After(limit):
		return stop(504, "upstream_timeout", "the model fell silent", true)
	}
	if err := x.c.reader.Probe(); errors.Is(err, io.EOF) {
		return errGone
	} else if err != nil {
		return &callerError{err}
	}
	return nil
}

// timeIsOver reports whether the caller has nothing more to ask.
func (x *exchange) timeIsOver(now time.Time) bool {
	return x.caller.ended() || now.After(x.end) && !x.caller.Until.IsZero()
}
