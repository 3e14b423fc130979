package access_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// A token for E2B's clients has the form that they check, is verified by all of its text,
// and keeps its form when it is rotated.
func TestTokenForE2B(t *testing.T) {
	tokens, _, _ := newStore(t)
	text, made, err := tokens.Create(t.Context(), access.Spec{Scope: access.Run, Account: "ann", E2B: true})
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) {
		t.Helper()
		digits, ok := strings.CutPrefix(text, "e2b_")
		if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
			t.Errorf("%d bytes of another form", len(text))
		}
		if caller, err := tokens.Verify(t.Context(), text); err != nil || caller.Account != "ann" || caller.Scope != access.Run {
			t.Errorf("%+v, %v", caller, err)
		}
	}
	check(text.Reveal())
	for at := range len(text.Reveal()) {
		other := []byte(text.Reveal())
		other[at] = map[bool]byte{true: '1', false: '0'}[other[at] == '0']
		if _, err := tokens.Verify(t.Context(), string(other)); err == nil {
			t.Errorf("byte %d does not count", at)
		}
	}
	again, _, err := tokens.Rotate(t.Context(), made.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	check(again.Reveal())
	if _, err := tokens.Verify(t.Context(), text.Reveal()); err == nil {
		t.Error("the old one is good")
	}
}
