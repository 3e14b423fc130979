package proxy

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/proxy/h1"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/traceparent"
)

// Caller is who is calling, as the host knows it, and what it may do.
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

// Admit says who sends a request, or why it is not served.
type Admit func(q *h1.Request) (*Caller, *dialect.Problem)

// Authenticate says who is at the other end of a connection.
type Authenticate func(conn net.Conn) Admit

// allows reports whether a model may be called.
func (c *Caller) allows(model string) bool { return matches(c.Models, model) }

// matches looks for a model among names, and beginnings of names that end in *.
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
// configuration. Whatever is not the second is the first.
const (
	StrictPolicy = "strict"
	OpenPolicy   = "open"
)

// AuthenticateByGrant takes connections that carry a grant. Whatever their callers say of
// themselves, they are the grant's; limits are the budgets that hold besides the
// grant's own, and keys those that were made for them, by the provider's name.
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

// NewCaller is the caller that terms are about.
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

// knownAs is the id of the run that a session's headers name.
func knownAs(headers map[string]string) string {
	for name, value := range headers {
		if strings.EqualFold(name, grant.RunHeader) {
			return value
		}
	}
	return ""
}

// ownLimits are the budgets of a grant itself.
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
