package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
)

// Access groups what servers need to authenticate and limit callers.
type Access struct {
	Tokens   *TokenStore
	Devices  *Devices
	Web      *WebLogins // nil if the gateway has no pages
	Limiter  *Limiter
	Throttle *Throttle
	// CookieName is the name of the cookie of web logins.
	CookieName string
	// SecureCookie says that the gateway is reached over TLS only.
	SecureCookie bool
	// OnLogIn, if set, records connections of authenticated callers, and tokens that
	// were refused.
	OnLogIn func(context.Context, LogIn)
}

// LogIn is a connection of an authenticated caller that outlives its request, or a
// token that was refused.
type LogIn struct {
	Caller *Caller    // nil if the token was refused
	Path   string     // of the route
	From   netip.Addr // not valid on the owner's socket
	Denied error      // why it was refused; nil if it was not
}

// Audit records a log-in.
func (a *Access) Audit(ctx context.Context, l LogIn) {
	if a.OnLogIn != nil {
		a.OnLogIn(ctx, l)
	}
}

// Authenticate returns the caller of a token sent from an address. It returns
// ErrTooMany for an address with too many failures, and ErrDenied for every fault
// of the token.
func (a *Access) Authenticate(ctx context.Context, from netip.Addr, text string) (*Caller, error) {
	caller, err := a.guard(from, func() (*Caller, error) { return a.Tokens.Verify(ctx, text) })
	if errors.Is(err, ErrDenied) {
		a.Audit(ctx, LogIn{From: from, Denied: err})
	}
	return caller, err
}

// guard counts failed verifications by address.
func (a *Access) guard(from netip.Addr, verify func() (*Caller, error)) (*Caller, error) {
	if err := a.Throttle.Check(from); err != nil {
		return nil, err
	}
	caller, err := verify()
	if errors.Is(err, ErrDenied) {
		if failed := a.Throttle.Failed(from); !errors.Is(failed, ErrDenied) {
			return nil, failed
		}
		return nil, err // unchanged: a ProofError tells the device's owner what is wrong
	}
	return caller, err
}

// Identify returns the caller of a request, by its bearer token or, without one, by
// its web login or the owner's socket that it arrived on.
func (a *Access) Identify(r *http.Request) (*Caller, error) {
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		if page := pageSecret(r); page != "" {
			return a.identifyWeb(r, page)
		}
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

// Remote returns the address of a request's connection. Forwarding headers are
// ignored.
func Remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// Socket returns the caller on the owner's socket, whose user id the kernel has
// confirmed.
func Socket() *Caller { return &Caller{Token: "socket", Name: "socket", Scope: Admin} }

type callerKey struct{}

// WithCaller returns a context whose requests have a caller without a token.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// FromContext returns the caller set by WithCaller, or nil.
func FromContext(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
