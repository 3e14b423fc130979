package cli

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"sesion", "session", 1}, {"memroy", "memory", 2}, {"run", "scope", 5}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestOnlyPlainValuesAreOfferedToShells(t *testing.T) {
	for v, want := range map[string]bool{"agent:main:telegram:42": true, "demo/one:1": true, "": false, "$(id)": false, "a b": false, "a;b": false, "`id`": false, "a\nb": false, "*": false} {
		if isPlain(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
