package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
)

// Access is all of it together, for servers.
type Access struct {
	Tokens   *TokenStore
	Devices  *Devices
	Limiter  *Limiter
	Throttle *Throttle
}

// Authenticate returns who sent a token's text from an address. It is ErrTooMany
// for an address that failed too often, and ErrDenied for everything else that
// is wrong with the token.
func (a *Access) Authenticate(ctx context.Context, from netip.Addr, text string) (*Caller, error) {
	return a.guard(from, func() (*Caller, error) { return a.Tokens.Verify(ctx, text) })
}

// guard counts failures by address.
func (a *Access) guard(from netip.Addr, verify func() (*Caller, error)) (*Caller, error) {
	if err := a.Throttle.Check(from); err != nil {
		return nil, err
	}
	caller, err := verify()
	if errors.Is(err, ErrDenied) {
		if failed := a.Throttle.Failed(from); !errors.Is(failed, ErrDenied) {
			return nil, failed
		}
		return nil, err // as it is: what is wrong with a device, its owner may know
	}
	return caller, err
}

// Identify returns who makes a request: by its bearer token, or, without one, by
// the socket that it came through.
func (a *Access) Identify(r *http.Request) (*Caller, error) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		if c := FromContext(r.Context()); c != nil {
			return c, nil
		}
		return nil, ErrDenied
	}
	scheme, text, _ := strings.Cut(header[0], " ")
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return nil, ErrDenied
	}
	return a.Authenticate(r.Context(), Remote(r), strings.TrimSpace(text))
}

// Remote is the address that a request came from, as the connection says; what
// headers say is not believed.
func Remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// Socket is the caller on the other end of the state directory's socket, where the
// kernel says that it is the owner.
func Socket() *Caller { return &Caller{Token: "socket", Name: "socket", Scope: Admin} }

type callerKey struct{}

// WithCaller gives a connection's requests a caller who needs no token.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// FromContext is the caller of WithCaller, or nil.
func FromContext(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
