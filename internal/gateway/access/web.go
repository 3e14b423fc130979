package access

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// PageHeader is the header in which a page sends its secret with every request. Pages
// of other sites cannot set it, so it also proves where a request comes from.
const PageHeader = "X-Atoll-Page"

// Subprotocol is the WebSocket protocol of pages; a page sends its secret as a second
// one with the prefix pageProtocol, because it cannot set headers there.
const (
	Subprotocol  = "atoll"
	pageProtocol = "atoll.page."
)

// NewWebCode returns a code that logs a web browser in as the owner, once.
func (a *Access) NewWebCode() (code string, expires time.Time, err error) { return a.Web.codes.mint() }

// LogInWithToken logs a web browser in with the text of a token.
func (a *Access) LogInWithToken(ctx context.Context, from netip.Addr, text string) (*WebLogin, *WebSecrets, error) {
	return a.logIn(ctx, from, func() (*Caller, string, error) { return a.Tokens.verifyParent(ctx, text) })
}

// LogInWithCode logs a web browser in with a code of NewWebCode.
func (a *Access) LogInWithCode(ctx context.Context, from netip.Addr, code string) (*WebLogin, *WebSecrets, error) {
	return a.logIn(ctx, from, func() (*Caller, string, error) {
		if !a.Web.codes.redeem(code) {
			return nil, "", ErrDenied
		}
		return Socket(), Socket().Token, nil
	})
}

func (a *Access) logIn(ctx context.Context, from netip.Addr, verify func() (*Caller, string, error)) (*WebLogin, *WebSecrets, error) {
	var parent string
	caller, err := a.guard(from, func() (c *Caller, err error) { c, parent, err = verify(); return c, err })
	a.Audit(ctx, LogIn{Caller: caller, Path: webPath, From: from, Denied: err})
	if err != nil {
		return nil, nil, err
	}
	return a.Web.begin(ctx, caller, parent)
}

// webPath is the path of log-ins of web browsers in the audit log.
const webPath = "/ui"

// identifyWeb returns the caller of a page's request, by its cookie and its secret.
func (a *Access) identifyWeb(r *http.Request, page string) (*Caller, error) {
	cookies := r.CookiesNamed(a.CookieName)
	if a.Web == nil || len(cookies) != 1 {
		return nil, ErrDenied
	}
	return a.guard(Remote(r), func() (*Caller, error) { return a.Web.Verify(r.Context(), cookies[0].Value, page) })
}

// HasCookieOnly reports whether a request has the cookie of a web login and nothing else
// that authenticates it: its page has to send its secret another way.
func (a *Access) HasCookieOnly(r *http.Request) bool {
	return a.Web != nil && len(r.Header.Values("Authorization")) == 0 && pageSecret(r) == "" && len(r.CookiesNamed(a.CookieName)) == 1
}

// IdentifyPage returns the caller of a page by the cookie of its request, and its secret
// that came another way.
func (a *Access) IdentifyPage(r *http.Request, page string) (*Caller, error) {
	return a.identifyWeb(r, page)
}

// pageSecret returns the secret that a page sent, "" if none did.
func pageSecret(r *http.Request) string {
	if s := r.Header.Get(PageHeader); s != "" {
		return s
	}
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(line, ",") {
			if s, ok := strings.CutPrefix(strings.TrimSpace(p), pageProtocol); ok {
				return s
			}
		}
	}
	return ""
}
