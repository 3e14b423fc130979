package proxy

import (
	"bytes"
	"context"
	"maps"
	"net"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Verify returns the terms of a token that a caller sent, or an error.
type Verify func(ctx context.Context, token string) (*grant.Terms, error)

// Budgets are the limits that hold for a caller by the configuration.
type Budgets func(*grant.Terms) []usage.Limit

// AuthenticateByToken admits callers that send a token of the host as their key.
// What the token leaves open, and nothing else, is taken from the headers of the
// request, so no session can act as another.
func AuthenticateByToken(verify Verify, budgets Budgets) Authenticate {
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

// sentToken returns the token of a request, from any header that clients put keys
// into.
func sentToken(q *h1.Request) []byte {
	for _, name := range []string{"x-atoll-token", "authorization", "x-api-key", googleKeyField} {
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

// tokenMark is the prefix of the host's tokens.
const tokenMark = "atoll_"

func cutPrefixFold(value []byte, lower string) ([]byte, bool) {
	if len(value) < len(lower) || !bytes.EqualFold(value[:len(lower)], []byte(lower)) {
		return nil, false
	}
	return value[len(lower):], true
}

// addSaid takes what the token leaves open from the request's headers. Other members
// of the metadata are passed on as they are.
func addSaid(t *grant.Terms, q *h1.Request) {
	fillEmpty(&t.Account, q.Get(grant.EndUserHeader))
	fillEmpty(&t.Run, q.Get(grant.RunHeader))
	said, err := grant.Metadata(string(q.Get(grant.MetadataHeader)))
	if err != nil {
		return
	}
	for name, to := range map[string]*string{"run_id": &t.Run, "attempt": &t.Attempt, "graph_id": &t.Graph, "existing_trace_id": &t.Trace} {
		fillEmpty(to, []byte(plainValue(said[name])))
		delete(said, name)
	}
	addMetadata(t, said)
}

// plainValue returns the text of a JSON string or number; "" of other values.
func plainValue(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v)
		return string(text)
	case '0':
		return string(v)
	}
	return ""
}

// addMetadata adds members to those of the terms, which take precedence.
func addMetadata(t *grant.Terms, said map[string]jsontext.Value) {
	own, err := grant.Metadata(t.Headers[grant.MetadataHeader])
	if err == nil {
		maps.Copy(said, own)
	}
	if len(said) == 0 {
		return
	}
	text, err := json.Marshal(said, json.Deterministic(true))
	if err != nil {
		return
	}
	if t.Headers = maps.Clone(t.Headers); t.Headers == nil {
		t.Headers = map[string]string{}
	}
	t.Headers[grant.MetadataHeader] = string(text)
}

func fillEmpty(to *string, value []byte) {
	if *to == "" && len(value) <= maxIdentity && isPlain(string(value)) {
		*to = string(value)
	}
}
