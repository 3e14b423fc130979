package linux

import (
	"slices"
	"strings"
	"testing"
)

// A user without control groups is told the command that helps on his machine.
func TestGroupRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		there []string
		want  string
	}{
		"no systemd":             {nil, "run as root"},
		"systemd, but no login":  {[]string{"/run/systemd/system"}, "sudo loginctl enable-linger 1234"},
		"systemd and its own":    {[]string{"/run/systemd/system", "/run/user/1234/systemd/private"}, "put `systemd-run --user --scope -q` in front"},
		"of another user's only": {[]string{"/run/systemd/system", "/run/user/1/systemd/private"}, "sudo loginctl enable-linger 1234"},
	} {
		got := groupRemedy(1234, func(path string) bool { return slices.Contains(c.there, path) })
		if !strings.Contains(got, c.want) || !strings.Contains(got, "remove the limit") {
			t.Errorf("%s: %q, want it to say %q", name, got, c.want)
		}
	}
}
