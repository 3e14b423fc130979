package proxy

import (
	"net"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// AuthenticateAs admits every connection as one caller. It is for the host's own
// agents, to whose connections no other program has access.
func AuthenticateAs(terms *grant.Terms, limits []usage.Limit) (Authenticate, error) {
	caller, err := NewCaller(terms, limits)
	if err != nil {
		return nil, err
	}
	return func(net.Conn) Admit {
		return func(*h1.Request) (*Caller, *dialect.Problem) { return caller, nil }
	}, nil
}
