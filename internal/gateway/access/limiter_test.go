package access_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/testkit/clocktest"
)

// spent is a ledger with fixed amounts.
type spent map[string]int64

func (s spent) Spent(_ context.Context, scope usage.Scope, key string) (usage.Charge, error) {
	return usage.Charge{MicroUSD: s[string(scope)+" "+key]}, nil
}

func TestRequestsAreLimited(t *testing.T) {
	c := clocktest.At(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	l := access.NewLimiter(access.LimiterOptions{Now: c.Now})
	caller := &access.Caller{Token: "a", Quota: access.Quota{Requests: 60}}
	for i := range 60 {
		if err := l.Admit(caller); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if err := l.Admit(caller); !errors.Is(err, access.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	if err := l.Admit(&access.Caller{Token: "b"}); err != nil {
		t.Errorf("another's: %v", err)
	}
	c.Move(-time.Hour)
	if err := l.Admit(caller); !errors.Is(err, access.ErrTooMany) {
		t.Errorf("a clock that jumps back gives nothing: %v", err)
	}
	c.Move(time.Second)
	if err := l.Admit(caller); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

func TestRunsAtOnceAreLimited(t *testing.T) {
	l := access.NewLimiter(access.LimiterOptions{})
	caller := &access.Caller{Token: "a", Quota: access.Quota{Runs: 2}}
	end, err := l.Begin(t.Context(), caller)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(t.Context(), caller); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(t.Context(), caller); !errors.Is(err, access.ErrQuota) {
		t.Errorf("a third: %v", err)
	}
	end()
	end() // counts once
	if _, err := l.Begin(t.Context(), caller); err != nil {
		t.Errorf("after one ended: %v", err)
	}
	if _, err := l.Begin(t.Context(), caller); !errors.Is(err, access.ErrQuota) {
		t.Errorf("a third again: %v", err)
	}
	l.SetDefaults(access.Quota{Runs: 1})
	plain := &access.Caller{Token: "b"}
	if _, err := l.Begin(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(t.Context(), plain); !errors.Is(err, access.ErrQuota) {
		t.Errorf("by the default: %v", err)
	}
}

func TestMoneyAndSandboxesAreLimited(t *testing.T) {
	c := clocktest.At(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	money, alive := spent{}, 0
	l := access.NewLimiter(access.LimiterOptions{Now: c.Now, Spending: money, Sandboxes: func(_ context.Context, account string) (int, error) {
		if account != "acct-1" {
			t.Errorf("asked about %q", account)
		}
		return alive, nil
	}})
	caller := &access.Caller{Token: "a", Account: "acct-1", Quota: access.Quota{MicroUSD: 100, Sandboxes: 1}}
	money["day 2026-11-15/acct-2"] = 1000
	money["day 2026-11-15/acct-1"] = 99
	if _, err := l.Begin(t.Context(), caller); err != nil {
		t.Error(err)
	}
	money["day 2026-11-15/acct-1"] = 100
	if _, err := l.Begin(t.Context(), caller); !errors.Is(err, access.ErrQuota) {
		t.Errorf("spent: %v", err)
	}
	c.Move(12 * time.Hour)
	if _, err := l.Begin(t.Context(), caller); err != nil {
		t.Errorf("the next day: %v", err)
	}
	if err := l.CheckSandboxes(t.Context(), caller); err != nil {
		t.Error(err)
	}
	alive = 1
	if err := l.CheckSandboxes(t.Context(), caller); !errors.Is(err, access.ErrQuota) {
		t.Errorf("full: %v", err)
	}
}

func TestWrongTokensAreThrottled(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	text, _, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, from, other string
		right             error // what the right token gets from there meanwhile
	}{
		{"IPv4", "192.0.2.1", "192.0.2.2", access.ErrTooMany},
		{"mapped", "::ffff:192.0.2.3", "192.0.2.4", access.ErrTooMany},
		{"a network of IPv6 is one", "2001:db8::1", "2001:db8:0:1::1", access.ErrTooMany},
		{"loopback is everybody", "127.0.0.1", "192.0.2.5", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := netip.MustParseAddr(test.from)
			for range access.Failures {
				if _, err := a.Authenticate(t.Context(), from, "wrong"); !errors.Is(err, access.ErrDenied) {
					t.Fatal(err)
				}
			}
			if _, err := a.Authenticate(t.Context(), from, "wrong"); !errors.Is(err, access.ErrTooMany) {
				t.Errorf("once more: %v", err)
			}
			if _, err := a.Authenticate(t.Context(), from, text.Reveal()); !errors.Is(err, test.right) {
				t.Errorf("the right one: %v", err)
			}
			if _, err := a.Authenticate(t.Context(), netip.MustParseAddr(test.other), text.Reveal()); err != nil {
				t.Errorf("another address: %v", err)
			}
			c.Move(access.Lockout)
			if _, err := a.Authenticate(t.Context(), from, text.Reveal()); err != nil {
				t.Errorf("later: %v", err)
			}
		})
	}
}

// A hundred thousand addresses that guess take the memory of ten thousand.
func TestThrottleIsBounded(t *testing.T) {
	c := clocktest.At(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	throttle := access.NewThrottle(c.Now)
	for i := range uint32(100_000) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 0x0b000000+i)
		_ = throttle.Failed(netip.AddrFrom4(b))
	}
	if n := throttle.Size(); n > 10_000 {
		t.Errorf("%d addresses are remembered", n)
	}
}

func TestWhoMakesARequest(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	text, _, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		header []string
		socket bool
		want   string
	}{
		{"bearer", []string{"Bearer " + text.Reveal()}, false, "ci"},
		{"small letters", []string{"bearer " + text.Reveal()}, false, "ci"},
		{"socket", nil, true, "socket"},
		{"a token goes before the socket", []string{"Bearer " + text.Reveal()}, true, "ci"},
		{"wrong on the socket", []string{"Bearer wrong"}, true, ""},
		{"nothing", nil, false, ""},
		{"two", []string{"Bearer " + text.Reveal(), "Bearer x"}, false, ""},
		{"basic", []string{"Basic " + text.Reveal()}, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			if test.socket {
				r = r.WithContext(access.WithCaller(r.Context(), access.Socket()))
			}
			r.Header["Authorization"] = test.header
			got, err := a.Identify(r)
			if test.want == "" {
				if !errors.Is(err, access.ErrDenied) {
					t.Errorf("%+v, %v", got, err)
				}
			} else if err != nil || got.Name != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
