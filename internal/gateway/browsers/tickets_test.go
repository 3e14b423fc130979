package browsers

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// newTickets returns tickets with a clock that the test moves.
func newTickets() (t *tickets, now *time.Time) {
	at := time.Unix(1_000_000, 0)
	return &tickets{now: func() time.Time { return at }, open: map[[32]byte]*ticket{}}, &at
}

// TestTicketsExpire checks that a ticket is good once, and for a minute (attack 19).
func TestTicketsExpire(t *testing.T) {
	all, now := newTickets()
	issue := func() string {
		text, err := all.issue(&ticket{caller: &access.Caller{Token: "t"}, browser: "b", endpoint: endpointCDP})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := issue()
	if all.redeem(text, "other", endpointCDP) != nil || all.redeem(text, "b", endpointView) != nil || all.redeem("", "b", endpointCDP) != nil {
		t.Error("a ticket of something else counted")
	}
	if all.redeem(text, "b", endpointCDP) == nil || all.redeem(text, "b", endpointCDP) != nil {
		t.Error("a ticket is good once")
	}
	old := issue()
	*now = now.Add(TicketLife)
	if all.redeem(old, "b", endpointCDP) != nil {
		t.Error("an old ticket counted")
	}
}

// TestTicketsAreBounded checks that a token cannot have tickets without end, and that old
// ones do not count.
func TestTicketsAreBounded(t *testing.T) {
	all, now := newTickets()
	issue := func(token string) error {
		_, err := all.issue(&ticket{caller: &access.Caller{Token: token}})
		return err
	}
	for range maxTickets {
		if err := issue("t"); err != nil {
			t.Fatal(err)
		}
	}
	if err := issue("t"); !errors.Is(err, errTickets) {
		t.Error(err)
	}
	if err := issue("another"); err != nil {
		t.Error(err)
	}
	*now = now.Add(TicketLife)
	if err := issue("t"); err != nil || len(all.open) != 1 {
		t.Error(err, len(all.open))
	}
}

// TestSource checks which addresses programs may come from.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		network, from string
		allowed       bool
	}{
		{"", "203.0.113.9", true}, {"203.0.113.0/24", "203.0.113.9", true}, {"203.0.113.0/24", "203.0.114.9", false},
		{"203.0.113.0/24", "::1", false}, {"garbage", "203.0.113.9", false},
	} {
		settings := &config.Browser{}
		settings.CDPSourceRange = c.network
		err := checkSource(settings, netip.MustParseAddr(c.from))
		if (err == nil) != c.allowed {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
