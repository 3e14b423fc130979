package proxy

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Caller is the sender of requests, as the host knows it, and what it may do.
type Caller struct {
	Subject audit.Subject
	Models  []string // names, or beginnings of names that end in *
	Limits  []usage.Limit
	Strict  bool            // nothing that the provider would fetch, keep or run
	Until   time.Time       // zero: no end
	Context context.Context // ends with the caller's right; nil: never
	Keys    map[string]Keys // used instead of a provider's own, by its name
	headers headers
}

// Admit returns the caller of a request, or the reason to refuse it.
type Admit func(q *h1.Request) (*Caller, *dialect.Problem)

// Authenticate returns how the requests of a connection are admitted.
type Authenticate func(conn net.Conn) Admit

// allows reports whether a model may be called.
func (c *Caller) allows(model string) bool { return matches(c.Models, model) }

// matches reports whether a model is among names, of which some end in *.
func matches(names []string, model string) bool {
	for _, name := range names {
		if prefix, ok := strings.CutSuffix(name, "*"); name == model || ok && strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}

func (c *Caller) ended() bool {
	return c.Context != nil && c.Context.Err() != nil || !c.Until.IsZero() && !time.Now().Before(c.Until)
}

// StrictPolicy and OpenPolicy are the names of the body policies in grants and
// configuration. Every other name means strict.
const (
	StrictPolicy = "strict"
	OpenPolicy   = "open"
)

// AuthenticateByGrant admits connections that carry a grant, as the grant's subject,
// whatever a request says. Limits are budgets besides the grant's own; keys are
// used instead of a provider's, by its name.
func AuthenticateByGrant(limits []usage.Limit, keys map[string]Keys) Authenticate {
	return func(conn net.Conn) Admit {
		g := grant.Of(conn)
		if g == nil {
			return refuseAll("no run is under way in this sandbox, or this process does not belong to it")
		}
		terms := g.Terms()
		caller, err := NewCaller(&terms, limits)
		if err != nil {
			return refuseAll(err.Error())
		}
		caller.Context, caller.Keys = g.Context(), keys
		return func(*h1.Request) (*Caller, *dialect.Problem) {
			if g.Err() != nil {
				return nil, noGrant("the run that this process belongs to is over")
			}
			return caller, nil
		}
	}
}

// NewCaller returns the caller of a grant's terms.
func NewCaller(t *grant.Terms, limits []usage.Limit) (*Caller, error) {
	c := &Caller{
		Subject: audit.Subject{Account: t.Account, Agent: t.Agent, Session: t.Session, Run: t.Run, Attempt: t.Attempt, Graph: t.Graph, Trace: t.Trace},
		Models:  t.Models, Limits: limits, Strict: t.BodyPolicy != OpenPolicy, Until: t.Until,
	}
	if known := knownAs(t.Headers); known != t.Run {
		c.Subject.KnownAs = known
	}
	if c.Subject.Trace == "" && t.Run != "" {
		c.Subject.Trace = traceparent.TraceIDFor(t.Run)
	}
	c.Limits = append(ownLimits(t.Budget), limits...)
	var err error
	c.headers, err = newHeaders(&c.Subject, t.Headers)
	return c, err
}

// knownAs returns the run's id in a session's headers.
func knownAs(headers map[string]string) string {
	for name, value := range headers {
		if strings.EqualFold(name, grant.RunHeader) {
			return value
		}
	}
	return ""
}

// ownLimits returns the budgets of a grant itself.
func ownLimits(b grant.Budget) (own []usage.Limit) {
	if b.MicroUSD != 0 || b.Tokens != 0 {
		own = append(own, usage.Limit{Scope: usage.ScopeRun, MicroUSD: b.MicroUSD, Tokens: b.Tokens})
	}
	if b.Day != 0 {
		own = append(own, usage.Limit{Scope: usage.ScopeDay, MicroUSD: b.Day})
	}
	return own
}

func (c *Caller) subject() usage.Subject {
	return usage.Subject{Run: c.Subject.Run, Session: c.Subject.Session, Agent: c.Subject.Agent, Account: c.Subject.Account}
}

func refuseAll(why string) Admit {
	return func(*h1.Request) (*Caller, *dialect.Problem) { return nil, noGrant(why) }
}

func noGrant(why string) *dialect.Problem {
	return &dialect.Problem{Status: 403, Code: "no_grant", Message: "not allowed to call models: " + why}
}
