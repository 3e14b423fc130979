package lazyregexp

import (
	"regexp"
	"strings"
	"testing"
)

func TestWordSaysWhatItsExpressionSays(t *testing.T) {
	words := []Word{
		{First: "a-zA-Z0-9", Rest: "a-zA-Z0-9_.-", Most: 63},
		{First: "A-Z2-7", Rest: "A-Z2-7", Most: 26},
		{First: "_", Rest: "-_"},
	}
	texts := []string{"", "a", "Z", "-", "_", "_-_", "a-b.c_d", ".a", "a b", "a\n", "ä", "aä", "2345", "18", "a\x00",
		strings.Repeat("A", 25), strings.Repeat("A", 26), strings.Repeat("A", 27), strings.Repeat("x", 63), strings.Repeat("x", 64)}
	for _, w := range words {
		expression := regexp.MustCompile(w.String())
		for _, text := range texts {
			if got, want := w.MatchString(text), expression.MatchString(text); got != want {
				t.Errorf("%s: %q: %v, want %v", w, text, got, want)
			}
		}
		for c := range 256 {
			for _, text := range []string{string([]byte{byte(c)}), "_" + string([]byte{byte(c)}), "A" + string([]byte{byte(c)})} {
				if got, want := w.MatchString(text), expression.MatchString(text); got != want {
					t.Errorf("%s: %q: %v, want %v", w, text, got, want)
				}
			}
		}
	}
}
