package token_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/store"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var bob = token.Identity{Account: "acct-1", Agent: "main", Session: "agent:main:acct-1:run-1", Run: "run-1", Graph: "sandbox:openclaw", Models: []string{"gemini-*"}}

func newStore(t *testing.T) (*token.Store, *clock, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &clock{now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	return token.NewStore(db, c.Now), c, path
}

func TestATokenYieldsItsSession(t *testing.T) {
	d, _, path := newStore(t)
	text, made, err := d.Create(t.Context(), bob, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Verify(t.Context(), text.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bob, got.Identity); diff != "" {
		t.Error(diff)
	}
	if got.ID != made.ID || got.Expires.Sub(got.Created) != token.DefaultLife {
		t.Errorf("got %+v, made %+v", got, made)
	}
	for _, suffix := range []string{"", "-wal"} { // nothing that proves it is stored
		content, _ := os.ReadFile(path + suffix)
		if bytes.Contains(content, []byte(text.Reveal())) || bytes.Contains(content, []byte(text.Reveal()[33:])) {
			t.Errorf("the token's text is in %s", path+suffix)
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	d, _, _ := newStore(t)
	first, _, err := d.Create(t.Context(), bob, 0)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := d.Create(t.Context(), token.Identity{Session: "other"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := first.Reveal(), second.Reveal()
	for name, text := range map[string]string{
		"empty": "", "prefix": "atoll_", "no secret": a[:33], "longer": a + "A", "shorter": a[:len(a)-1], "lower case": strings.ToLower(a),
		"id of one, secret of another": a[:33] + b[33:], "unknown id": "atoll_" + strings.Repeat("A", 26) + a[32:],
		"sql": "atoll_' OR 1=1 -- AAAAAAAAAAAA_" + a[33:], "changed": a[:len(a)-1] + other(a[len(a)-1]),
	} {
		if _, err := d.Verify(t.Context(), text); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
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
	text, _, err := d.Create(t.Context(), bob, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.move(time.Minute)
	if _, err := d.Verify(t.Context(), text.Reveal()); !errors.Is(err, token.ErrExpired) {
		t.Errorf("after its life: %v", err)
	}
	text, made, err := d.Create(t.Context(), bob, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	elsewhere := token.NewStore(db, c.Now)
	if _, err := elsewhere.Verify(t.Context(), text.Reveal()); err != nil {
		t.Fatal(err)
	}
	if err := d.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(t.Context(), text.Reveal()); !errors.Is(err, token.ErrRevoked) {
		t.Errorf("revoked here: %v", err)
	}
	c.move(token.CacheTime)
	if _, err := elsewhere.Verify(t.Context(), text.Reveal()); !errors.Is(err, token.ErrRevoked) {
		t.Errorf("revoked elsewhere: %v", err)
	}
	if err := d.Revoke(t.Context(), "NOBODY"); !errors.Is(err, token.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
}

func TestRotateKeepsTheIdentity(t *testing.T) {
	d, c, _ := newStore(t)
	old, made, err := d.Create(t.Context(), bob, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := d.Rotate(t.Context(), made.ID, time.Hour, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{old.Reveal(), text.Reveal()} {
		if got, err := d.Verify(t.Context(), good); err != nil || got.Session != bob.Session {
			t.Errorf("%+v, %v", got, err)
		}
	}
	c.move(time.Minute)
	if _, err := d.Verify(t.Context(), old.Reveal()); !errors.Is(err, token.ErrRevoked) {
		t.Errorf("the old one after its grace: %v", err)
	}
	if _, _, err := d.Rotate(t.Context(), made.ID, 0, 0); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("rotating a revoked one: %v", err)
	}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

func TestIdentitiesAreChecked(t *testing.T) {
	d, _, _ := newStore(t)
	for name, who := range map[string]token.Identity{
		"no session": {Run: "r"}, "line": {Session: "a\r\nx-litellm-api-key: b"}, "space": {Session: "a b"}, "quote": {Session: `a"b`},
		"long": {Session: strings.Repeat("a", 300)}, "not ASCII": {Session: "s", Run: "ü"}, "model": {Session: "s", Models: []string{"a\nb"}},
	} {
		if _, _, err := d.Create(t.Context(), who, 0); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, life := range []time.Duration{-1, token.MaxLife + 1} {
		if _, _, err := d.Create(t.Context(), bob, life); err == nil {
			t.Errorf("life %v: accepted", life)
		}
	}
}
