package proxy

import (
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// answerStats is what is counted of an answer while it is relayed.
type answerStats struct {
	asked     string
	status    int // of the answer to the caller
	answered  int // the upstream's status; 0: it has not answered
	denied    string
	firstByte time.Duration
	headSent  bool
	replayed  bool
	complete  bool // the answer was read to its end, though its caller had gone
	unsent    int  // bytes of events that were not sent to the caller

	events, bytes, smallest int64
}

// count counts an event that is part of the answer.
func (a *answerStats) count(size int) {
	a.events++
	a.bytes += int64(size)
	if n := int64(size); a.smallest == 0 || n < a.smallest {
		a.smallest = n
	}
}

// extra returns the bytes beyond those of the JSON around each event, for which
// the smallest event stands.
func (a *answerStats) extra() int64 { return a.bytes - a.events*a.smallest }

// minTokens returns a low estimate of the tokens so far.
func (a *answerStats) minTokens() int64 { return max(a.events, a.extra()/4) }

// maxTokens returns a high estimate of the tokens so far. An answer in one piece is
// all content.
func (a *answerStats) maxTokens() int64 {
	if a.events == 1 {
		return a.bytes / 3
	}
	return a.events + a.extra()/3
}

// finish settles the request and writes its audit record.
func (x *exchange) finish() {
	x.memory.Free()
	x.endInflight()
	x.recording.free()
	if x.entered {
		defer x.s.leave(x.caller)
	}
	if x.c.server.ctx.Err() != nil {
		x.c.q.Close = true
	}
	r := audit.ModelRequest{
		Time: x.start, Replay: x.stats.replayed, RequestID: x.id, Dialect: x.dialectName(), ModelAsked: x.stats.asked,
		Status: x.stats.status, FirstByte: x.stats.firstByte, Total: time.Since(x.start), Denied: x.stats.denied,
	}
	if x.caller != nil {
		r.Subject = x.caller.Subject
	}
	x.settle(&r)
	if err := x.s.options.Audit.Append(&r); err != nil {
		x.s.options.Logger.Error("audit", "error", err, "request", x.id)
	}
}

// dialectName returns the name of the dialect for records.
func (x *exchange) dialectName() string {
	if x.route != nil && x.route.shape == ask.Embeddings {
		return "embeddings"
	}
	return x.dialect.String()
}

// settle charges what the request cost and puts it into the record.
func (x *exchange) settle(r *audit.ModelRequest) {
	if x.reservation == nil {
		return
	}
	if !x.sent {
		x.reservation.Release()
		return
	}
	outcome := x.outcome()
	charge, err := x.reservation.Settle(outcome)
	if err != nil {
		x.s.options.Logger.Error("settle", "error", err, "request", x.id)
		r.Denied = "not settled: " + err.Error()
	}
	t := charge.Tokens
	r.Tokens = audit.Tokens{Input: t.Input, CachedInput: t.CachedInput, CacheWrite: t.CacheWrite, Output: t.Output, Reasoning: t.Reasoning}
	r.CostMicroUSD, r.ModelAnswered = charge.MicroUSD, outcome.Model
	r.Unpriced, r.Estimated = charge.Unpriced > 0, charge.Estimated > 0
}

// outcome returns the usage that the upstream reported, or else an estimate: input
// as reserved, and as many tokens of answer as can have come.
func (x *exchange) outcome() usage.Outcome {
	m := x.w.meter
	u := &m.Usage
	o := usage.Outcome{Status: x.stats.status, Model: u.Model, LongCache: x.ask.LongCache}
	if u.Cost >= 0 {
		o.UpstreamCost = &u.Cost
	}
	switch {
	case m.Plausible():
		o.Tokens = usage.Tokens{Input: u.Input - u.Cached - u.Written, CachedInput: u.Cached, CacheWrite: u.Written, Output: u.Output, Reasoning: u.Reasoning}
		if x.stats.denied != "" && !x.stats.complete && (x.dialect == dialect.Anthropic || x.dialect == dialect.Google) {
			// The report is from the beginning: these dialects count as they go.
			o.Tokens.Output = max(o.Tokens.Output, x.bounded(x.stats.maxTokens()))
			o.Estimated = true
		}
	case x.stats.answered >= 300:
		// The upstream refused: that costs nothing.
	default:
		o.Estimated = true
		o.Tokens = usage.Tokens{Input: x.ask.InputTokens, Output: x.bounded(x.stats.maxTokens())}
		if x.route.shape == ask.Compact {
			o.Tokens.Output = min(o.Tokens.Output, x.ask.InputTokens)
		}
	}
	return o
}

// bounded limits an estimate to what the request asked for.
func (x *exchange) bounded(tokens int64) int64 {
	if wanted := x.maxAnswerTokens(); wanted >= 0 {
		return min(tokens, wanted)
	}
	return tokens
}
