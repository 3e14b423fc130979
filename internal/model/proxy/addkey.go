package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

const (
	// maxKeys is how many keys are tried for one request.
	maxKeys = 3
	// maxStale is how often a request is sent again because the kept connection
	// for it had closed before anything was written.
	maxStale = 10
)

// call asks the upstream and brings its answer to the caller.
func (x *exchange) call() bool {
	a, err := x.send()
	if err != nil {
		return x.fail(err)
	}
	defer x.endCall(a)
	x.stats.firstByte = time.Since(x.start)
	x.stats.status, x.stats.answered = a.StatusCode, a.StatusCode
	if a.StatusCode == 200 && contentType(a.Header.Get("Content-Type")) == eventStream {
		return x.stream(a)
	}
	return x.wholeAnswer(a)
}

// send sends the request, with another key if one is refused, and returns the
// answer, whose body was not read yet.
func (x *exchange) send() (*http.Response, error) {
	for try := 1; ; try++ {
		key, err := x.keys().Pick()
		if err != nil {
			return nil, stop(503, "upstream_failing", err.Error()+": it is left alone for a moment", true)
		}
		x.secret = key.Value.Reveal()
		a, err := x.attempt()
		for stale := 0; err != nil && x.stale && stale < maxStale; stale++ {
			a, err = x.attempt()
		}
		if err != nil {
			if isUpstreams(err) {
				key.Failed(0)
			}
			return nil, err
		}
		switch {
		case a.StatusCode < 400:
			key.Worked()
			return a, nil
		case a.StatusCode == 401 || a.StatusCode == 403 || a.StatusCode == 429 || a.StatusCode >= 500:
			if another := key.Failed(a.StatusCode); !another || try == maxKeys || a.StatusCode >= 500 {
				return a, nil
			}
		default:
			return a, nil
		}
		x.endCall(a)
	}
}

// attempt sends the request once. Meanwhile the watch checks for a reason to
// stop.
func (x *exchange) attempt() (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.s.ctx)) // the watch ends it
	x.callContext = ctx
	x.connected.Store(false)
	x.conn.clear()
	request, began := x.newRequest(ctx), time.Now()
	x.watch.start(x.s, cancel, func(now time.Time) error { return x.checkStopBeforeHead(now, began) })
	a, err := x.provider.transport.RoundTrip(request)
	if err == nil {
		err = x.checkHead(ctx, a)
	}
	x.stale = err != nil && context.Cause(ctx) == nil && x.conn.wasStale()
	x.sent = x.sent || x.connected.Load() && !x.stale
	if err != nil {
		err = reason(ctx, err)
		x.endCall(a)
		return nil, err
	}
	x.heard.Store(time.Now().UnixNano())
	return a, nil
}

// checkStopBeforeHead is the watch's check until the head of the answer is there.
func (x *exchange) checkStopBeforeHead(now, began time.Time) error {
	if x.sending.isSending() && now.Sub(began) > x.s.options.WriteTimeout {
		return fmt.Errorf("the upstream does not take the request: %w", os.ErrDeadlineExceeded)
	}
	return x.checkStop(now, began.Add(x.provider.HeaderTimeout))
}

// checkHead waits for the rest of the request to be sent, so that its memory is
// free, and refuses answers that are none.
func (x *exchange) checkHead(ctx context.Context, a *http.Response) error {
	if a.StatusCode < 200 || a.StatusCode > 599 {
		return fmt.Errorf("the upstream answers with status %d", a.StatusCode)
	}
	return x.sending.wait(ctx)
}

// endCall ends a call to the upstream. A connection whose answer was not read to
// its end is closed.
func (x *exchange) endCall(a *http.Response) {
	x.watch.stop()
	x.sending.withdraw()
	if a != nil {
		_ = a.Body.Close()
	}
}

// newRequest makes the request to the upstream. All of it is ours, but for the
// body and the three fields that addPassed takes over.
func (x *exchange) newRequest(ctx context.Context) *http.Request {
	r := &http.Request{Method: x.route.method, URL: x.provider.at(x.provider.pathOf(x.route), x.route.query(x.c.q.Target)), Header: x.newHeader()}
	x.sending = &sentBody{}
	if x.route.kind == routeAsk {
		x.setBody(r)
	}
	trace := &httptrace.ClientTrace{GotConn: x.gotConn}
	return r.WithContext(httptrace.WithClientTrace(ctx, trace))
}

// gotConn notes that there is a connection. Net/http calls it in its goroutine.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.connected.Store(true)
	x.conn.set(info)
}

// setBody gives the request its body. A small one is copied: net/http writes what
// it knows to be in memory together with the head.
func (x *exchange) setBody(r *http.Request) {
	size := x.ask.SizeAfterEdits(len(x.body))
	r.ContentLength = int64(size)
	if size <= maxJoined {
		text := x.ask.Append(make([]byte, 0, size), x.body)
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	} else {
		x.w.pieces = x.ask.Pieces(x.w.pieces[:0], x.body)
		x.sending.pieces = x.w.pieces
		r.GetBody = x.sending.reader
	}
	r.Body, _ = r.GetBody()
}

// The fields that are the same in every request. Nothing changes them.
var (
	ownAgent    = []string{"atoll"}
	ownEncoding = []string{"identity"}
	ownAccept   = []string{"application/json, text/event-stream"}
	ownType     = []string{"application/json"}
)

// newHeader returns the fields of the request, with the key.
func (x *exchange) newHeader() http.Header {
	h := make(http.Header, 16)
	h["User-Agent"], h["Accept-Encoding"], h["Accept"] = ownAgent, ownEncoding, ownAccept
	x.addKey(h)
	if !x.provider.OmitIdentity {
		x.caller.headers.add(h, x.id)
		h[endUserField] = []string{x.endUser()}
	}
	addPassed(h, &x.c.q)
	addBeta(h, x.provider.Beta)
	if x.route.kind == routeAsk {
		h["Content-Type"] = ownType
	}
	return h
}

// addKey adds the key in the field that the upstream reads it from. Google's server reads
// it from another one in OpenAI's dialect.
func (x *exchange) addKey(h http.Header) {
	switch header := x.provider.Header; {
	case header == "x-api-key":
		h["X-Api-Key"] = []string{x.secret}
	case header == googleKeyField && x.dialect == dialect.Google:
		h["X-Goog-Api-Key"] = []string{x.secret}
	default:
		h["Authorization"] = []string{"Bearer " + x.secret}
	}
}

// The names of fields in the form that net/http keeps them in.
var (
	endUserField  = http.CanonicalHeaderKey(grant.EndUserHeader)
	metadataField = http.CanonicalHeaderKey(grant.MetadataHeader)
	callField     = http.CanonicalHeaderKey("x-litellm-call-id")
)
