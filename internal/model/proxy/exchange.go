package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// exchange is one request and its answer.
type exchange struct {
	c        *conn
	w        *worker
	s        *Server
	route    *route // nil: there is none
	dialect  dialect.Dialect
	caller   *Caller   // nil: not admitted
	provider *provider // that is asked
	entered  bool

	id        string
	start     time.Time
	end       time.Time // when it must be over
	memory    membudget.Share
	body      []byte
	whole     bool // the request's body was read
	ask       ask.Ask
	recording recording

	reservation *usage.Reservation
	sent        bool   // something may have reached the upstream
	secret      string // the key that was used
	watch       watch
	callContext context.Context // of the call to the upstream
	sending     *sentBody
	connected   atomic.Bool  // there was a connection to the upstream
	conn        used         // that connection
	stale       bool         // it had closed before the request was written
	heard       atomic.Int64 // when something of the answer came last, in ns
	stats       answerStats
}

func newExchange(c *conn, w *worker, r *route, d dialect.Dialect) *exchange {
	now := time.Now()
	x := &exchange{c: c, w: w, s: c.server, route: r, dialect: d, id: rand.Text(), start: now}
	x.memory.Budget, x.body = c.server.memory, w.body
	w.meter.Reset(d)
	return x
}

// run serves the request and reports whether the connection can go on.
func (x *exchange) run() bool {
	if p := x.prepare(); p != nil {
		return x.refuse(p)
	}
	if x.route.kind == routeList {
		return x.listModels()
	}
	if again, found := x.replay(); found {
		return again
	}
	if p := x.reserve(); p != nil {
		return x.refuse(p)
	}
	return x.call()
}

// prepare makes all checks that need neither the ledger nor the upstream.
func (x *exchange) prepare() *dialect.Problem {
	if x.route == nil {
		return &dialect.Problem{Status: 404, Code: "not_found", Message: "this is not served here"}
	}
	var p *dialect.Problem
	if x.caller, p = x.c.admit(&x.c.q); p != nil {
		return p
	}
	if p := x.checkGoogle(); p != nil {
		return p
	}
	if x.entered = x.s.enter(x.caller); !x.entered {
		return busy("too many requests of this caller are under way")
	}
	if err := x.s.options.Audit.Healthy(); err != nil {
		x.s.options.Logger.Error("audit", "error", err)
		return busy("requests cannot be recorded at the moment")
	}
	if x.route.kind == routeList {
		return nil
	}
	if p := x.readBody(); p != nil {
		return p
	}
	return x.checkBody()
}

func busy(why string) *dialect.Problem {
	return &dialect.Problem{Status: 503, Code: "busy", Message: why, Retry: true}
}

// readBody reads the request's body, within bounds.
func (x *exchange) readBody() *dialect.Problem {
	c, o := x.c, &x.s.options
	if p := checkEncoding(&c.q); p != nil {
		return p
	}
	if c.q.Continue && c.reader.Buffered() == 0 {
		if c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")) != nil {
			return callerGone
		}
	}
	if !c.reader.Holds(c.q.Length) {
		if err := c.net.SetReadDeadline(time.Now().Add(o.BodyTimeout)); err != nil {
			return callerGone
		}
	}
	body := c.reader.RequestBody(c.q.Length)
	var err error
	x.body, err = body.ReadAll(x.body, o.MaxBody, &x.memory)
	if err == nil {
		x.whole = true
		return nil
	}
	c.q.Close = true
	protocol, ok := errors.AsType[*h1.ProtocolError](err)
	switch {
	case ok:
		return &dialect.Problem{Status: protocol.Status, Code: "bad_request", Message: protocol.Reason}
	case errors.Is(err, h1.ErrTooLarge):
		return &dialect.Problem{Status: 413, Code: "request_too_large", Message: "the request is larger than what is passed on"}
	case errors.Is(err, membudget.ErrTotal):
		return busy(err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &dialect.Problem{Status: 408, Code: "timeout", Message: "the request took too long to arrive"}
	}
	return callerGone
}

// callerGone is the problem of a caller that no answer can reach.
var callerGone = &dialect.Problem{Status: 499, Code: "gone", Message: "the caller has gone"}

// checkEncoding refuses compressed bodies, which cannot be checked.
func checkEncoding(q *h1.Request) *dialect.Problem {
	if encoding := q.Get("content-encoding"); len(encoding) > 0 && string(encoding) != "identity" {
		return &dialect.Problem{Status: 415, Code: "unsupported_encoding", Message: "send the request without a content encoding"}
	}
	return nil
}

// checkBody parses the body and refuses what the caller may not ask for.
func (x *exchange) checkBody() *dialect.Problem {
	o := &x.s.options
	rules := ask.Rules{Strict: x.caller.Strict, MaxN: o.MaxN, MaxOutput: o.MaxOutput, InjectUsage: true, ForbidUnsent: true, Allowed: o.Allowed, Model: x.route.model, Stream: x.route.stream}
	if err := x.w.ask.Read(&x.ask, x.body, x.route.shape, &rules); err != nil {
		refusal, _ := errors.AsType[*ask.Refusal](err)
		return &dialect.Problem{Status: refusal.Status, Code: refusal.Code, Message: refusal.Error()}
	}
	x.stats.asked = string(x.ask.Model)
	if !x.caller.allows(x.stats.asked) {
		return &dialect.Problem{Status: 403, Code: "model_not_allowed", Message: "model " + x.stats.asked + " may not be called here"}
	}
	p := x.s.providerFor(x.stats.asked)
	if p == nil {
		return &dialect.Problem{Status: 404, Code: "model_not_found", Message: x.s.noProvider(x.stats.asked)}
	}
	x.setProvider(p)
	if !p.speaks(x.dialect) {
		return &dialect.Problem{Status: 404, Code: "dialect_not_served", Message: "the provider of model " + x.stats.asked + " has neither Messages nor Responses: ask it in Google's API, or with Chat Completions"}
	}
	x.ask.Identify(x.endUser())
	return nil
}

// anonymousUser is the end user for upstreams with OmitIdentity.
const anonymousUser = "atoll"

// endUser returns the end user that the upstream bills. It never comes from the
// request: without an account it is the agent of this installation.
func (x *exchange) endUser() string {
	switch {
	case x.provider.OmitIdentity:
		return anonymousUser
	case x.caller.headers.endUser != "":
		return x.caller.headers.endUser
	}
	return EndUser(x.s.options.Installation, x.caller.Subject.Agent)
}

// EndUser returns the end user of an agent that has no account.
func EndUser(installation, agent string) string {
	return strings.Join(slices.DeleteFunc([]string{"atoll", installation, agent}, func(part string) bool { return part == "" }), "-")
}

// reserve reserves the most that the request can cost.
func (x *exchange) reserve() *dialect.Problem {
	if x.route.shape.IsCount() {
		return nil // counting costs nothing
	}
	var err error
	x.reservation, err = x.s.options.Ledger.Reserve(x.s.ctx, &usage.Call{
		ID: x.id, Subject: x.caller.subject(), Model: x.stats.asked, Dialect: x.dialectName(),
		InputTokens: x.ask.InputTokens, MaxOutputTokens: x.maxAnswerTokens(), Limits: x.caller.Limits, LongCache: x.ask.LongCache,
	})
	if err == nil {
		return nil
	}
	if over, ok := errors.AsType[*usage.BudgetError](err); ok {
		return &dialect.Problem{Status: 402, Code: "budget_exceeded", Message: over.Error()}
	}
	if unpriced, ok := errors.AsType[*usage.UnpricedError](err); ok {
		return &dialect.Problem{Status: 403, Code: "model_not_priced", Message: unpriced.Error()}
	}
	x.s.options.Logger.Error("reserve", "error", err)
	if errors.Is(err, usage.ErrDamaged) {
		return &dialect.Problem{Status: 503, Code: "usage_damaged", Message: "what calls cost cannot be counted: the journal of usage is damaged; atoll billing repair, on the host, mends it"}
	}
	return busy("what the request would cost cannot be reserved at the moment")
}

// maxAnswerTokens returns how many tokens of answer the request allows; below 0 if it
// does not say.
func (x *exchange) maxAnswerTokens() int64 {
	if x.ask.MaxOutput < 0 {
		return -1
	}
	return x.ask.MaxOutput * x.ask.N
}

// refuse answers with a problem, after reading a short rest of the body.
func (x *exchange) refuse(p *dialect.Problem) bool {
	x.stats.status, x.stats.denied = p.Status, p.Code+": "+p.Message
	if p == callerGone {
		return false
	}
	if !x.whole && !x.c.q.Close && !x.c.discardBody() {
		x.c.q.Close = true
	}
	if x.c.answerProblem(x.w, x.dialect, p) != nil {
		return false
	}
	if x.c.q.Close {
		h1.Linger(x.c.net)
	}
	return !x.c.q.Close
}
