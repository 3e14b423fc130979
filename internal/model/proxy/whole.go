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
)

// wholeAnswer brings an answer that is not a stream to the caller.
func (x *exchange) wholeAnswer(l *link, a *h1.Response) bool {
	// The answer's fields lie in the connection's buffer, which is somebody else's
	// as soon as the body is read: what the caller sees of them is kept first.
	x.w.head = x.c.appendHead(x.w.head[:0], a.Status, contentType(a.Get("content-type")))
	x.w.head = x.appendDown(x.w.head, a)
	answer, err := x.readWhole(l, a)
	if err != nil {
		x.account.count(len(x.body)) // what has come of it was made, and is paid for
		return x.fail(err)
	}
	if a.Status < 300 && x.route.shape != ask.Count {
		x.w.meter.Whole(answer)
		x.account.count(len(answer))
	}
	if p := x.disguise(a, answer); p != nil {
		return x.refuse(p)
	}
	answer = x.scrub(answer)
	x.w.head = h1.AppendLength(x.w.head, len(answer))
	if x.c.send(x.w, answer) != nil {
		return false
	}
	return !x.c.q.Close
}

// readWhole reads the answer's body and gives the connection back.
func (x *exchange) readWhole(l *link, a *h1.Response) ([]byte, error) {
	o := &x.s.options
	x.body = x.w.store[:0] // the request's was sent
	x.memory.Free()
	body := l.reader.ResponseBody(a.Length)
	for {
		if !l.reader.Holds(a.Length) {
			if err := l.SetReadDeadline(time.Now().Add(o.Tick)); err != nil {
				l.discard()
				return nil, err
			}
		}
		before := len(x.body)
		var err error
		x.body, err = body.ReadAll(x.body, o.MaxAnswer, &x.memory)
		if len(x.body) > before {
			x.account.heard = time.Now()
		}
		switch {
		case err == nil:
			x.giveBack(l, a)
			return x.body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = x.lookAround(x.account.lastHeard(x.start).Add(x.place.IdleTimeout))
		case errors.Is(err, membudget.ErrTotal):
			err = stop(503, "busy", membudget.ErrTotal.Error(), true)
		case errors.Is(err, h1.ErrTooLarge):
			err = stop(502, "upstream_failed", "the model's answer is larger than what is passed on", false)
		case errors.Is(err, io.EOF):
			err = h1.ErrTruncated
		}
		if err != nil {
			l.discard()
			return nil, err
		}
	}
}

func (x *exchange) giveBack(l *link, a *h1.Response) {
	if a.Close {
		l.discard()
		return
	}
	x.place.put(l)
}

// disguise replaces answers that tell what a caller must not know, or that would
// have it try again in vain.
func (x *exchange) disguise(a *h1.Response, answer []byte) *dialect.Problem {
	switch {
	case a.Status < 300:
		return nil
	case a.Status < 400:
		return &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the upstream sent us elsewhere, where we do not go"}
	case a.Status == 401:
		return &dialect.Problem{Status: 502, Code: "upstream_refused", Message: "the upstream does not take the proxy's key"}
	case a.Status == 402 && looksLikeJSON(answer):
		return nil // not tried again, and a proxy of ours behind this one says whose budget it is
	case bytes.Contains(answer, []byte(`"budget_exceeded"`)):
		return &dialect.Problem{Status: 402, Code: "budget_exceeded", Message: "a budget that the provider itself keeps is used up: see its settings"}
	case !looksLikeJSON(answer):
		return &dialect.Problem{Status: a.Status, Code: "upstream_failed", Message: "the upstream failed", Retry: a.Status >= 500 || a.Status == 429}
	}
	return nil
}

func looksLikeJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 1 && b[0] == '{' && b[len(b)-1] == '}'
}

// scrub takes keys and the upstream's address out of an answer.
func (x *exchange) scrub(answer []byte) []byte {
	for _, value := range x.secrets() {
		if key := []byte(value.Reveal()); len(key) > 0 && bytes.Contains(answer, key) {
			answer = bytes.ReplaceAll(answer, key, []byte("[redacted]"))
		}
	}
	if host := []byte(x.place.address); x.account.status >= 400 && bytes.Contains(answer, host) {
		answer = bytes.ReplaceAll(answer, host, []byte("upstream"))
	}
	return answer
}

// listModels answers with the models that the caller may use.
func (x *exchange) listModels() bool {
	if !x.c.discardBody() {
		return false
	}
	x.whole = true
	var allowed []string
	for _, p := range x.s.places {
		x.goTo(p)
		ids, problem := x.modelsOf()
		if problem != nil {
			return x.refuse(problem)
		}
		for _, id := range ids {
			if x.caller.allows(id) && x.s.placeOf(id) == p {
				allowed = append(allowed, id)
			}
		}
	}
	x.account.status = 200
	x.w.text = dialect.AppendModels(x.w.text[:0], allowed)
	return x.c.answer(x.w, 200, "application/json", x.w.text) == nil && !x.c.q.Close
}

// modelsOf are the models of one place.
func (x *exchange) modelsOf() ([]string, *dialect.Problem) {
	var a h1.Response
	l, err := x.send(&a)
	if err != nil {
		return nil, x.problemOf(err)
	}
	x.account.firstByte = time.Since(x.start)
	answer, err := x.readWhole(l, &a)
	if err != nil {
		return nil, x.problemOf(err)
	}
	if problem := x.disguise(&a, answer); problem != nil {
		return nil, problem
	}
	ids, err := dialect.ModelIDs(answer)
	if err != nil || a.Status != 200 {
		return nil, &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the upstream does not list its models"}
	}
	return ids, nil
}
