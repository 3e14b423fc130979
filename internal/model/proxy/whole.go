package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

// wholeAnswer brings an answer that is not a stream to the caller.
func (x *exchange) wholeAnswer(a *http.Response) bool {
	answer, err := x.readWhole(a)
	if err != nil {
		x.stats.count(len(x.body)) // what has come of it is paid for
		return x.fail(err)
	}
	if a.StatusCode < 300 && !x.route.shape.IsCount() {
		x.w.meter.Whole(answer)
		x.stats.count(len(answer))
	}
	if p := x.maskError(a, answer); p != nil {
		return x.refuse(p)
	}
	answer = x.scrub(answer)
	x.w.head = x.c.appendHead(x.w.head[:0], a.StatusCode, contentType(a.Header.Get("Content-Type")))
	x.w.head = h1.AppendLength(x.appendDown(x.w.head, a.Header), len(answer))
	if x.c.send(x.w, answer) != nil {
		return false
	}
	return !x.c.q.Close
}

// readWhole reads the answer's body into the memory of the request's, which was
// sent.
func (x *exchange) readWhole(a *http.Response) ([]byte, error) {
	x.body = x.w.store[:0]
	x.memory.Free()
	if a.ContentLength > x.s.options.MaxAnswer {
		return nil, errAnswerTooLarge()
	}
	x.watch.change(func(now time.Time) error { return x.checkStop(now, x.lastHeard().Add(x.provider.IdleTimeout)) })
	for {
		err := x.readInto(a.Body)
		switch {
		case int64(len(x.body)) > x.s.options.MaxAnswer:
			return nil, errAnswerTooLarge()
		case errors.Is(err, io.EOF):
			x.watch.stop()
			return x.body, nil
		case errors.Is(err, membudget.ErrTotal):
			return nil, stop(503, "busy", membudget.ErrTotal.Error(), true)
		case err != nil:
			return nil, reason(x.callContext, err)
		}
	}
}

func errAnswerTooLarge() error {
	return stop(502, "upstream_failed", "the model's answer is larger than what is passed on", false)
}

// readInto reads once, behind what x.body holds.
func (x *exchange) readInto(body io.Reader) (err error) {
	if len(x.body) == cap(x.body) {
		if x.body, err = x.memory.Grow(x.body, membudget.FreeBytes); err != nil {
			return err
		}
	}
	n, err := body.Read(x.body[len(x.body):cap(x.body)])
	x.body = x.body[:len(x.body)+n]
	if n > 0 {
		x.heard.Store(time.Now().UnixNano())
	}
	return err
}

// maskError returns the problem that replaces an error of the upstream which the caller
// must not see, or after which it would retry in vain; nil: none does.
func (x *exchange) maskError(a *http.Response, answer []byte) *dialect.Problem {
	switch {
	case a.StatusCode < 300:
		return nil
	case a.StatusCode < 400:
		return &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the upstream sent us elsewhere, where we do not go"}
	case a.StatusCode == 401:
		return &dialect.Problem{Status: 502, Code: "upstream_refused", Message: "the upstream does not take the proxy's key"}
	case a.StatusCode == 400 && x.provider.Header == googleKeyField && bytes.Contains(answer, []byte(`"API_KEY_INVALID"`)): // Google's 401
		return &dialect.Problem{Status: 502, Code: "upstream_refused", Message: "the upstream does not take the proxy's key"}
	case a.StatusCode == 402 && looksLikeJSON(answer):
		return nil // clients do not retry it, and another Atoll behind this one names the budget
	case bytes.Contains(answer, []byte(`"budget_exceeded"`)):
		return &dialect.Problem{Status: 402, Code: "budget_exceeded", Message: "a budget that the provider itself keeps is used up: see its settings"}
	case !looksLikeJSON(answer):
		return &dialect.Problem{Status: a.StatusCode, Code: "upstream_failed", Message: "the upstream failed", Retry: a.StatusCode >= 500 || a.StatusCode == 429}
	}
	return nil
}

func looksLikeJSON(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 1 && b[0] == '{' && b[len(b)-1] == '}'
}

// scrub removes keys and the upstream's address from an answer.
func (x *exchange) scrub(answer []byte) []byte {
	for _, value := range x.secrets() {
		if key := []byte(value.Reveal()); len(key) > 0 && bytes.Contains(answer, key) {
			answer = bytes.ReplaceAll(answer, key, []byte("[redacted]"))
		}
	}
	if host := []byte(x.provider.address); x.stats.status >= 400 && bytes.Contains(answer, host) {
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
	for _, p := range x.s.providers {
		x.setProvider(p)
		ids, problem := x.modelsOf()
		if problem != nil {
			return x.refuse(problem)
		}
		for _, id := range ids {
			if x.caller.allows(id) && x.s.providerFor(id) == p {
				allowed = append(allowed, id)
			}
		}
	}
	x.stats.status = 200
	x.w.text = dialect.AppendModels(x.w.text[:0], allowed)
	return x.c.answer(x.w, 200, "application/json", x.w.text) == nil && !x.c.q.Close
}

// modelsOf returns the models of the chosen provider.
func (x *exchange) modelsOf() ([]string, *dialect.Problem) {
	a, err := x.send()
	if err != nil {
		return nil, x.problemOf(err)
	}
	defer x.endCall(a)
	x.stats.firstByte = time.Since(x.start)
	answer, err := x.readWhole(a)
	if err != nil {
		return nil, x.problemOf(err)
	}
	if problem := x.maskError(a, answer); problem != nil {
		return nil, problem
	}
	ids, err := dialect.ModelIDs(answer)
	ids = x.provider.googleIDs(ids)
	if err != nil || a.StatusCode != 200 {
		return nil, &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the upstream does not list its models"}
	}
	return ids, nil
}
