package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/clocktest"
)

const cookieName = "atoll_test"

var somewhere = netip.MustParseAddr("192.0.2.7")

// newWeb returns an access with web logins, and the clock of its store.
func newWeb(t *testing.T) (*access.Access, *clocktest.Clock) {
	t.Helper()
	tokens, clock, _ := newStore(t)
	return &access.Access{Tokens: tokens, Web: access.NewWebLogins(tokens), Throttle: access.NewThrottle(clock.Now), CookieName: cookieName}, clock
}

// logIn creates a token and logs a web browser in with it.
func logIn(t *testing.T, a *access.Access, spec access.Spec) (*access.WebLogin, *access.WebSecrets, *access.Token) {
	t.Helper()
	text, token, err := a.Tokens.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	login, secrets, err := a.LogInWithToken(t.Context(), somewhere, text.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return login, secrets, token
}

// pageRequest is a request of a page; "" leaves a half out.
func pageRequest(cookie, page string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/me", nil)
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: cookieName, Value: cookie})
	}
	if page != "" {
		r.Header.Set(access.PageHeader, page)
	}
	return r
}

// A web login acts for its token, with both halves and not with one.
func TestWebLoginNeedsBothHalves(t *testing.T) {
	a, _ := newWeb(t)
	_, mine, _ := logIn(t, a, access.Spec{Scope: access.Run, Account: "acme"})
	_, other, _ := logIn(t, a, access.Spec{Scope: access.Admin})
	c, err := a.Identify(pageRequest(mine.Cookie.Reveal(), mine.Page.Reveal()))
	if err != nil || c.Account != "acme" || c.Scope != access.Run || c.WebLogin == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	upgrade := pageRequest(mine.Cookie.Reveal(), "")
	upgrade.Header.Set("Sec-WebSocket-Protocol", "atoll, atoll.page."+mine.Page.Reveal())
	if c, err := a.Identify(upgrade); err != nil || c.Account != "acme" {
		t.Errorf("a WebSocket: %+v, %v", c, err)
	}
	for name, r := range map[string]*http.Request{
		"the cookie alone":       pageRequest(mine.Cookie.Reveal(), ""),
		"the page's alone":       pageRequest("", mine.Page.Reveal()),
		"halves of two":          pageRequest(mine.Cookie.Reveal(), other.Page.Reveal()),
		"swapped":                pageRequest(mine.Page.Reveal(), mine.Cookie.Reveal()),
		"a page's half too long": pageRequest(mine.Cookie.Reveal(), mine.Page.Reveal()+"A"),
		"nothing":                pageRequest("", ""),
	} {
		if c, err := a.Identify(r); !errors.Is(err, access.ErrDenied) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	twice := pageRequest(mine.Cookie.Reveal(), mine.Page.Reveal())
	twice.AddCookie(&http.Cookie{Name: cookieName, Value: "x"})
	if _, err := a.Identify(twice); !errors.Is(err, access.ErrDenied) {
		t.Errorf("two cookies: %v", err)
	}
}

// A web login ends with its token, with a log-out, when it is idle and when it is old.
func TestWebLoginEnds(t *testing.T) {
	a, clock := newWeb(t)
	good := func(s *access.WebSecrets) bool {
		_, err := a.Web.Verify(t.Context(), s.Cookie.Reveal(), s.Page.Reveal())
		if err != nil && !errors.Is(err, access.ErrDenied) {
			t.Fatal(err)
		}
		return err == nil
	}
	_, revoked, token := logIn(t, a, access.Spec{Scope: access.Run})
	if !good(revoked) || a.Tokens.Revoke(t.Context(), token.ID) != nil || good(revoked) {
		t.Error("it does not end with its token")
	}
	login, out, _ := logIn(t, a, access.Spec{Scope: access.Run})
	if err := a.Web.End(t.Context(), login.ID); err != nil || good(out) {
		t.Errorf("it does not end with a log-out: %v", err)
	}
	if err := a.Web.End(t.Context(), login.ID); !errors.Is(err, access.ErrUnknownWebLogin) {
		t.Errorf("a second log-out: %v", err)
	}
	_, used, _ := logIn(t, a, access.Spec{Scope: access.Run})
	_, idle, _ := logIn(t, a, access.Spec{Scope: access.Run})
	for range 24 { // 12 hours less a moment, used every half hour
		clock.Move(access.WebLoginIdle/2 - time.Second)
		if !good(used) {
			t.Fatal("one that is used has ended")
		}
	}
	if good(idle) {
		t.Error("one that is idle has not ended")
	}
	clock.Move(time.Minute)
	if good(used) {
		t.Error("one that is old has not ended")
	}
	if all, err := a.Web.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A fixed token's web login ends when the token leaves the configuration.
func TestWebLoginOfFixedToken(t *testing.T) {
	a, _ := newWeb(t)
	a.Tokens.SetFixed(map[string]secret.Value{"gateway.auth.token": secret.New("a fixed token")})
	_, s, err := a.LogInWithToken(t.Context(), somewhere, "a fixed token")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a.Web.Verify(t.Context(), s.Cookie.Reveal(), s.Page.Reveal()); err != nil || c.Scope != access.Admin {
		t.Fatalf("%+v, %v", c, err)
	}
	a.Tokens.SetFixed(nil)
	if _, err := a.Web.Verify(t.Context(), s.Cookie.Reveal(), s.Page.Reveal()); !errors.Is(err, access.ErrDenied) {
		t.Errorf("%v", err)
	}
}

// A code logs in once, within its time, however many try at the same moment.
func TestWebCodeIsUsedOnce(t *testing.T) {
	a, clock := newWeb(t)
	code, _, err := a.NewWebCode()
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		from := netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
		all.Go(func() {
			if l, _, err := a.LogInWithCode(t.Context(), from, code); err == nil && l.Scope == access.Admin {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d logged in with one code", won.Load())
	}
	late, _, err := a.NewWebCode()
	if err != nil {
		t.Fatal(err)
	}
	clock.Move(access.CodeLife)
	if _, _, err := a.LogInWithCode(t.Context(), somewhere, late); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a code that is old: %v", err)
	}
	for range 16 {
		if _, _, err := a.NewWebCode(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.NewWebCode(); !errors.Is(err, access.ErrTooMany) {
		t.Errorf("codes without end: %v", err)
	}
}

// Guesses at codes are slowed down as those at tokens are.
func TestWebCodeGuessesAreThrottled(t *testing.T) {
	a, _ := newWeb(t)
	for range 1000 {
		_, _, err := a.LogInWithCode(t.Context(), somewhere, "GUESS")
		if errors.Is(err, access.ErrTooMany) {
			return
		}
		if !errors.Is(err, access.ErrDenied) {
			t.Fatal(err)
		}
	}
	t.Error("a thousand guesses were answered")
}

// The connections of a web login end when it does, without being asked first.
func TestConnectionsEndWithTheWebLogin(t *testing.T) {
	t.Parallel()
	a, _ := newWeb(t)
	login, secrets, _ := logIn(t, a, access.Spec{Scope: access.Run})
	c, err := a.Web.Verify(t.Context(), secrets.Cookie.Reveal(), secrets.Page.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := a.UntilEnded(t.Context(), c)
	defer stop()
	ended, forget := access.WatchWebLogin(a.Web, login.ID)
	defer forget()
	if err := a.Web.End(t.Context(), login.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("the end was not told at once")
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), access.ErrDenied) {
		t.Error(context.Cause(ctx))
	}
}
