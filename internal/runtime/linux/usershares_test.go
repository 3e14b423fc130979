package linux_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// TestSharesOfTheUser checks that a sandbox has a bounded share of what the kernel
// counts by user, and that a configuration can ask for another.
func TestSharesOfTheUser(t *testing.T) {
	l := newSite(t)
	rows := func(i sandbox.Instance) map[string]string {
		found := map[string]string{}
		for line := range strings.Lines(l.sh(i, "cat /proc/self/limits")) {
			if len(line) > 40 {
				found[strings.TrimSpace(line[:26])] = strings.Join(strings.Fields(line[26:])[:2], " ")
			}
		}
		return found
	}
	got := rows(l.start())
	for name, most := range map[string]int{"Max open files": 16384, "Max pending signals": 4096, "Max msgqueue size": 409600} {
		_, hard, _ := strings.Cut(got[name], " ")
		if n, err := strconv.Atoi(hard); err != nil || n <= 0 || n > most {
			t.Errorf("%s: %q, want at most %d", name, got[name], most)
		}
	}
	asked := rows(l.start(func(s *sandbox.Spec) {
		s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 100, Hard: 200}}
	}))
	if asked["Max open files"] != "100 200" {
		t.Errorf("a limit that was asked for: %q", asked["Max open files"])
	}
}
