package cli

import (
	"testing"
)

func TestOnlyPlainValuesAreOfferedToShells(t *testing.T) {
	for v, want := range map[string]bool{"agent:main:telegram:42": true, "demo/one:1": true, "": false, "$(id)": false, "a b": false, "a;b": false, "`id`": false, "a\nb": false, "*": false} {
		if isPlain(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
