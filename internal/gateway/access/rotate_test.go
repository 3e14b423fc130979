package access_test

import (
	"errors"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// A token that replaces another has the same rights; the old one is good until its
// grace is over, and its account is known as long.
func TestRotate(t *testing.T) {
	d, clock, _ := newStore(t)
	spec := access.Spec{Name: "ci", Scope: access.Run, Account: "ann", Quota: access.Quota{Runs: 2}, Life: time.Hour}
	old, made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	text, next, err := d.Rotate(t.Context(), made.ID, 0, time.Minute)
	if err != nil || next.ID == made.ID || next.Name != "ci" || next.Account != "ann" || next.Quota.Runs != 2 || next.Expires.Sub(next.Created) != time.Hour {
		t.Fatalf("%+v, %v", next, err)
	}
	for name, token := range map[string]string{"old": old.Reveal(), "new": text.Reveal()} {
		if caller, err := d.Verify(t.Context(), token); err != nil || caller.Account != "ann" {
			t.Errorf("%s: %+v, %v", name, caller, err)
		}
	}
	clock.Move(2 * time.Minute)
	if _, err := d.Verify(t.Context(), old.Reveal()); !errors.Is(err, access.ErrDenied) {
		t.Errorf("the old one after its grace: %v", err)
	}
	if _, err := d.Verify(t.Context(), text.Reveal()); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if _, _, err := d.Rotate(t.Context(), made.ID, 0, 0); err == nil {
		t.Error("a revoked token was replaced")
	}
	if _, _, err := d.Rotate(t.Context(), "NOBODY", 0, 0); !errors.Is(err, access.ErrUnknown) {
		t.Error(err)
	}
}
