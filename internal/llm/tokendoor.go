package llm

import (
	"bytes"
	"context"
	"net"

	"github.com/atoll-run/atoll/internal/grant"
	"github.com/atoll-run/atoll/internal/llm/dialect"
	"github.com/atoll-run/atoll/internal/llm/h1"
	"github.com/atoll-run/atoll/internal/llm/jsonscan"
	"github.com/atoll-run/atoll/internal/usage"
)

// Verify returns the terms of a token that a caller sent, or an error.
type Verify func(ctx context.Context, token string) (*grant.Terms, error)

// Budgets are the limits that hold for a caller by the configuration.
type Budgets func(*grant.Terms) []usage.Limit

// TokenDoor takes callers that send a token which the host minted, as their key.
// The token says who they are. What it leaves open, and nothing else, they may
// say themselves, in the headers of the gateway that they are: so one session
// cannot speak for another, whatever it sends.
func TokenDoor(verify Verify, budgets Budgets) Door {
	return func(net.Conn) Admit {
		return func(q *h1.Request) (*Caller, *dialect.Problem) {
			terms, err := verify(context.Background(), string(sentToken(q)))
			if err != nil {
				return nil, &dialect.Problem{Status: 401, Code: "invalid_token", Message: "a valid session token is needed as the key"}
			}
			said := *terms
			addSaid(&said, q)
			caller, err := NewCaller(&said, budgets(&said))
			if err != nil {
				return nil, noGrant(err.Error())
			}
			return caller, nil
		}
	}
}

// sentToken is the token of a request, wherever clients put their keys.
func sentToken(q *h1.Request) []byte {
	for _, name := range []string{"x-atoll-token", "authorization", "x-api-key"} {
		value := q.Get(name)
		if rest, ok := cutPrefixFold(value, "bearer "); ok {
			value = bytes.TrimSpace(rest)
		}
		if bytes.HasPrefix(value, []byte(tokenMark)) {
			return value
		}
	}
	return nil
}

// tokenMark is how the host's tokens begin.
const tokenMark = "atoll_"

func cutPrefixFold(value []byte, lower string) ([]byte, bool) {
	if !hasPrefixFold(value, lower) {
		return nil, false
	}
	return value[len(lower):], true
}

// addSaid fills what the token leaves open with what the caller says.
func addSaid(t *grant.Terms, q *h1.Request) {
	fill(&t.Account, q.Get("x-litellm-end-user-id"))
	fill(&t.Run, q.Get("x-cogni-run-id"))
	s := jsonscan.New()
	s.Reset(q.Get("x-litellm-spend-logs-metadata"))
	if s.Kind() != jsonscan.Object {
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		to := saidField(t, string(key))
		if to == nil || s.Kind() != jsonscan.String {
			s.Skip()
			continue
		}
		fill(to, s.Text())
	}
}

func saidField(t *grant.Terms, name string) *string {
	switch name {
	case "run_id":
		return &t.Run
	case "attempt":
		return &t.Attempt
	case "graph_id":
		return &t.Graph
	case "existing_trace_id":
		return &t.Trace
	}
	return nil
}

func fill(to *string, value []byte) {
	if *to == "" && len(value) <= maxIdentity && isPlain(value) {
		*to = string(value)
	}
}
