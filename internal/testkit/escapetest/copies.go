package escapetest

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Copies attacks a runtime whose sandboxes have copies of the host's directories. One
// sandbox serves the steps and most of the cases; a case that needs what such a runtime
// has not must find that it is refused.
func Copies(t *testing.T, s Subject) {
	s.Copies = true
	t.Run("one sandbox", func(t *testing.T) {
		t.Parallel()
		home := newArena(t, s).start(rationed, beside)
		home.try(t, steps)
		for _, c := range cases {
			if isShared(c.name) {
				t.Run(c.name, func(t *testing.T) { c.test(home.in(t, home)) })
			}
		}
	})
	for _, c := range cases {
		if isShared(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if needs, ok := refusedToCopies[c.name]; ok {
				newArena(t, s).wantGap(needs.change)
				return
			}
			c.test(newArena(t, s))
		})
	}
}

// alone are the cases that change their sandbox for good, or make several.
var alone = []string{
	"a probe that is killed", "a working directory behind a descriptor", "devices replaced before a start",
	"the guest's socket replaced by a link to one of the host",
}

func isShared(name string) bool {
	_, refused := refusedToCopies[name]
	return !refused && !slices.Contains(alone, name)
}

// refusal is what a case needs, and why a runtime refuses it.
type refusal struct {
	why    string
	change func(*sandbox.Spec)
}

func bind(s *sandbox.Spec) {
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: "/usr", Target: "/data", Kind: sandbox.MountBind})
}

func rootInside(s *sandbox.Spec) { s.User = "0:0" }

// refusedToCopies are the cases that cannot be made where sandboxes have copies.
var refusedToCopies = map[string]refusal{
	"set-user-ID files, capabilities and devices of a root with capabilities": {"there is no user 0", rootInside},
	"disk fill of a writable root by one file":                                {"there is no user 0, to whom a root belongs", rootInside},
	"links swapped under a mount's target during starts":                      {"there are no mounts of the host", bind},
	"links swapped under a mount's source during starts":                      {"there are no mounts of the host", bind},
	"hard links swapped under a mount's source during starts":                 {"there are no mounts of the host", bind},
	"hard links swapped under a mount's target during starts":                 {"there are no mounts of the host", bind},
	"inode fill of a temporary file system with a number": {"volumes in memory have no number of files",
		func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "nr_inodes=1000"}} }},
}

// wantGap checks that the runtime does not make a sandbox with a change.
func (a *arena) wantGap(change func(*sandbox.Spec)) {
	a.t.Helper()
	spec := a.spec(change)
	gaps := a.runtime.Check(a.t.Context(), spec)
	if len(gaps) == 0 {
		a.t.Error("what the attack needs is not refused any more: make the attack")
	}
	a.t.Logf("refused: %+v", gaps)
	if _, err := a.tryStart(spec); err == nil {
		a.t.Error("a sandbox was made of it")
	}
}
