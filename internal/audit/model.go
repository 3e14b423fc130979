package audit

import "time"

// Tokens are what a request used.
type Tokens struct{ Input, CachedInput, CacheWrite, Output, Reasoning int64 }

// ModelRequest is one request to a model, made or refused.
type ModelRequest struct {
	Time                      time.Time
	Subject                   Subject
	Replay                    bool // the answer was paid for before
	RequestID                 string
	Dialect                   string
	ModelAsked, ModelAnswered string
	Status                    int
	FirstByte, Total          time.Duration
	Tokens                    Tokens
	CostMicroUSD              int64
	Unpriced, Estimated       bool
	Denied                    string // why it was refused; "" if it was not
}

func (r *ModelRequest) header() (Kind, time.Time, *Subject) { return Model, r.Time, &r.Subject }

// limited reports whether the request cost nothing.
func (r *ModelRequest) limited() bool {
	return r.Denied != "" || r.CostMicroUSD == 0 && r.Tokens == Tokens{} && !r.Unpriced
}

func (r *ModelRequest) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendFlag(b, "replay", r.Replay)
	b = appendText(b, "id", r.RequestID)
	b = appendText(b, "dialect", r.Dialect)
	b = appendText(b, "modelAsked", redact(r.ModelAsked, scrub)) // callers write this one,
	b = appendText(b, "model", redact(r.ModelAnswered, scrub))   // upstreams this one,
	b = appendText(b, "denied", redact(r.Denied, scrub))         // and both may be quoted here
	b = appendNumber(b, "status", int64(r.Status))
	b = appendNumber(b, "firstByteMicros", r.FirstByte.Microseconds())
	b = appendNumber(b, "totalMicros", r.Total.Microseconds())
	b = appendNumber(b, "input", r.Tokens.Input)
	b = appendNumber(b, "cachedInput", r.Tokens.CachedInput)
	b = appendNumber(b, "cacheWrite", r.Tokens.CacheWrite)
	b = appendNumber(b, "output", r.Tokens.Output)
	b = appendNumber(b, "reasoning", r.Tokens.Reasoning)
	b = appendNumber(b, "costMicroUSD", r.CostMicroUSD)
	b = appendFlag(b, "unpriced", r.Unpriced)
	return appendFlag(b, "estimated", r.Estimated)
}
