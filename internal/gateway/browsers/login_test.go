package browsers

import (
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/store"
)

// TestViewEndsWithTheLogIn checks that what a page opened with a ticket ends when its
// person logs out, although the token goes on.
func TestViewEndsWithTheLogIn(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tokens := access.NewTokenStore(access.TokenStoreOptions{DB: db})
	s := New(Options{Access: &access.Access{Tokens: tokens, Web: access.NewWebLogins(tokens), Throttle: access.NewThrottle(nil)}})
	text, _, err := tokens.Create(t.Context(), access.Spec{Scope: access.Read})
	if err != nil {
		t.Fatal(err)
	}
	login, secrets, err := s.Access.LogInWithToken(t.Context(), netip.MustParseAddr("192.0.2.7"), text.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Access.Web.Verify(t.Context(), secrets.Cookie.Reveal(), secrets.Page.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := s.tickets.issue(&ticket{caller: c, browser: "b", endpoint: endpointView})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.SetPathValue("ticket", opened)
	r.SetPathValue("name", "b")
	redeemed, ctx, stop := s.redeem(r, endpointView)
	if redeemed == nil {
		t.Fatal("the ticket was refused")
	}
	defer stop()
	if err := s.Access.Web.End(t.Context(), login.ID); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
