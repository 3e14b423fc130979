package escapetest

import (
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The limits that bombs go off under.
const (
	pids      = 64
	memoryMiB = 96
	openFiles = 64
)

// bomb uses something up. It must be stopped, by an error or by its end, and
// the guest must live on and start programs. A small one of the same kind must
// work, or the test could not fail.
type bomb struct {
	name        string
	large, some []string
	// ends says that being killed is as good as being refused.
	ends bool
	// stays says that what was used up stays so: the guest answers, but there may
	// be no room for a program until files are removed.
	stays bool
}

var bombs = []bomb{
	{"fd exhaustion", []string{"files", "4096"}, []string{"files", "8"}, false, false},
	{"fork bomb", []string{"forks", "1024"}, []string{"forks", "2"}, false, false},
	{"memory bomb", []string{"memory", "1024"}, []string{"memory", "8"}, true, false},
	{"tmpfs fill", []string{"fill", "/tmp", "1024", "16"}, []string{"fill", "/tmp", "8", "16"}, true, false},
	{"inode fill", []string{"inodes", "/tmp", "400000"}, []string{"inodes", "/tmp", "100"}, true, true},
	{"disk fill by one file", []string{"fill", workdir, "64", "64"}, []string{"fill", workdir, "8", "64"}, true, false},
}

// limited is what a careful configuration asks for.
func limited(s *sandbox.Spec) {
	s.Limits = sandbox.Limits{
		Pids: pids, Memory: memoryMiB << 20, MemorySwap: memoryMiB << 20,
		Ulimits: []sandbox.Ulimit{{Name: "nofile", Soft: openFiles, Hard: openFiles}, {Name: "fsize", Soft: 32 << 20, Hard: 32 << 20}},
	}
}

func runBombs(t *testing.T, s Subject) {
	if !s.Limits {
		t.Run("limits that cannot be enforced are refused", func(t *testing.T) {
			a := newArena(t, s)
			if gaps := a.runtime.Check(t.Context(), a.spec(limited)); len(gaps) == 0 {
				t.Error("no gap is reported")
			}
			if _, err := a.tryStart(a.spec(limited)); err == nil {
				t.Error("a sandbox was made without its limits")
			}
		})
		return
	}
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			c := newArena(t, s).start(limited)
			if out, result := c.attack(b.some...); result.ExitCode != 1 {
				t.Errorf("not even a small one goes off (%d)\n%s", result.ExitCode, out)
			}
			c.mustStop(b)
			c.answers()
			if !b.stays {
				c.alive()
			}
			c.wantCanary("host")
		})
	}
}

func (c *cell) mustStop(b bomb) {
	c.t.Helper()
	out, result, err := c.attackIn(workdir, b.large...)
	c.t.Logf("%v, %s\n%s", err, ended(result), out)
	switch {
	case err != nil && !b.ends:
		c.t.Errorf("the bomb could not be watched: %v", err)
	case err == nil && result.ExitCode != 0 && (!b.ends || result.Signal == "" && !result.OOM):
		c.t.Error("nothing stopped the bomb")
	}
}

func ended(r *machine.Result) string {
	switch {
	case r == nil:
		return "no result"
	case r.OOM:
		return "out of memory"
	case r.Signal != "":
		return r.Signal
	}
	return "ended"
}
