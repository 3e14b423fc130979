package machine_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

func TestVersionContradicts(t *testing.T) {
	cases := []struct {
		a, b guestfs.Version
		want bool
	}{
		{"1-2", "1-2", false},
		{"1-2", "1-3", true},
		{"1-2+a", "1-2", false},
		{"1-2", "1-2+a", false},
		{"1-2+a", "1-2+a", false},
		{"1-2+a", "1-2+b", true},
		{"1-2+a", "1-3+a", true},
	}
	for _, c := range cases {
		if got := c.a.Contradicts(c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}
