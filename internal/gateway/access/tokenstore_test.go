package access_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/secret"
)

var runner = access.Spec{Name: "ci", Scope: access.Run, Account: "acct-1", Quota: access.Quota{Runs: 2, MicroUSD: 5}}

func TestATokenYieldsItsCaller(t *testing.T) {
	d, c, path := newStore(t)
	text, made, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Verify(t.Context(), text.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	want := &access.Caller{Token: made.ID, Name: "ci", Scope: access.Run, Account: "acct-1", Quota: runner.Quota}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(text.Reveal(), "atollgw_") || len(text.Reveal()) != access.TokenLength || made.Expires.Sub(made.Created) != access.DefaultLife {
		t.Errorf("%d characters, %+v", len(text.Reveal()), made)
	}
	for _, suffix := range []string{"", "-wal"} { // nothing that proves it is stored
		content, _ := os.ReadFile(path + suffix)
		if bytes.Contains(content, []byte(text.Reveal()[36:])) {
			t.Errorf("the token's text is in %s", path+suffix)
		}
	}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].LastUsed == nil || !list[0].LastUsed.Equal(c.Now()) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	d, _, _ := newStore(t)
	first, _, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := d.Create(t.Context(), access.Spec{Scope: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	a, b := first.Reveal(), second.Reveal()
	for name, text := range map[string]string{
		"empty": "", "prefix": "atollgw_", "no secret": a[:35], "longer": a + "A", "shorter": a[:len(a)-1], "lower case": strings.ToLower(a),
		"id of one, secret of another": a[:35] + b[35:], "unknown id": "atollgw_" + strings.Repeat("A", 26) + a[34:],
		"sql": "atollgw_' OR 1=1 -- AAAAAAAAAAAA_" + a[35:], "changed": a[:len(a)-1] + other(a[len(a)-1]), "long": strings.Repeat("x", 1<<20),
	} {
		if _, err := d.Verify(t.Context(), text); !errors.Is(err, access.ErrDenied) {
			t.Errorf("%s: %v, want ErrDenied", name, err)
		}
	}
}

func other(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func TestTokensEnd(t *testing.T) {
	d, c, path := newStore(t)
	spec := runner
	spec.Life = time.Hour
	text, made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := otherProcess(t, path, c)
	if _, err := elsewhere.Verify(t.Context(), text.Reveal()); err != nil {
		t.Fatal(err)
	}
	c.Move(-24 * time.Hour) // a clock that jumps back does not make what is known last
	if _, err := elsewhere.Verify(t.Context(), text.Reveal()); err != nil {
		t.Fatal(err)
	}
	c.Move(24 * time.Hour)
	if err := d.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(t.Context(), text.Reveal()); !errors.Is(err, access.ErrDenied) {
		t.Errorf("revoked here: %v", err)
	}
	c.Move(access.RevocationDelay)
	if _, err := elsewhere.Verify(t.Context(), text.Reveal()); !errors.Is(err, access.ErrDenied) {
		t.Errorf("revoked elsewhere: %v", err)
	}
	if text, _, err = d.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	c.Move(time.Hour)
	if _, err := d.Verify(t.Context(), text.Reveal()); !errors.Is(err, access.ErrDenied) {
		t.Errorf("after its life: %v", err)
	}
	if err := d.Revoke(t.Context(), "NOBODY"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
}

// The watchers of a token are notified when it ends, in every way it can end.
func TestWatchersAreNotified(t *testing.T) {
	d, c, path := newStore(t)
	keep(t, d)
	watch := func() (<-chan struct{}, string) {
		text, made, err := d.Create(t.Context(), access.Spec{Scope: access.Read, Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		caller, err := d.Verify(t.Context(), text.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		ended, stop := d.Watch(caller)
		t.Cleanup(stop)
		return ended, made.ID
	}
	here, id := watch()
	there, far := watch()
	expiring, _ := watch()
	if err := d.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ends(t, "revoked here", here)
	if !open(there) || !open(expiring) {
		t.Error("another's token ended too")
	}
	if err := otherProcess(t, path, c).Revoke(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	ends(t, "revoked elsewhere", there)
	c.Move(2 * time.Hour)
	ends(t, "expired", expiring)
}

func TestFixedTokens(t *testing.T) {
	d, _, _ := newStore(t)
	d.SetFixed(map[string]secret.Value{"gateway.auth.token": secret.New("hunter2"), "empty": secret.New("")})
	caller, err := d.Verify(t.Context(), "hunter2")
	if err != nil || !caller.May(access.Admin) || caller.Token != "gateway.auth.token" {
		t.Fatalf("%+v, %v", caller, err)
	}
	if _, err := d.Verify(t.Context(), ""); !errors.Is(err, access.ErrDenied) {
		t.Errorf("no token: %v", err)
	}
	ended, stop := d.Watch(caller)
	defer stop()
	d.SetFixed(map[string]secret.Value{"gateway.auth.token": secret.New("hunter2")})
	if !open(ended) {
		t.Error("the same token again ended it")
	}
	d.SetFixed(map[string]secret.Value{"gateway.auth.token": secret.New("hunter3")})
	ends(t, "replaced", ended)
	if _, err := d.Verify(t.Context(), "hunter2"); !errors.Is(err, access.ErrDenied) {
		t.Errorf("the old one: %v", err)
	}
}

func TestSpecsAreChecked(t *testing.T) {
	d, _, _ := newStore(t)
	for name, spec := range map[string]access.Spec{
		"no scope": {}, "scope": {Scope: "root"}, "account": {Scope: access.Run, Account: "a:b"}, "line": {Scope: access.Run, Account: "a\nb"},
		"name": {Scope: access.Run, Name: "a\x1b[0m"}, "quota": {Scope: access.Run, Quota: access.Quota{Runs: -1}},
		"money of nobody": {Scope: access.Run, Quota: access.Quota{MicroUSD: 1}},
		"life":            {Scope: access.Run, Life: -1}, "long life": {Scope: access.Run, Life: access.MaxLife + 1},
	} {
		if _, _, err := d.Create(t.Context(), spec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAccounts(t *testing.T) {
	d, _, _ := newStore(t)
	for _, account := range []string{"b", "a", "b", ""} {
		if _, _, err := d.Create(t.Context(), access.Spec{Scope: access.Admin, Account: account}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.Accounts(t.Context())
	if diff := cmp.Diff([]string{"", "a", "b"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if has, err := d.HasTokens(t.Context()); !has || err != nil {
		t.Error(has, err)
	}
}
