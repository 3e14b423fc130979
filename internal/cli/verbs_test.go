package cli

import (
	"slices"
	"testing"
)

// A command line that begins with a verb makes only that one, so the names must
// be theirs.
func TestVerbsHaveTheirNames(t *testing.T) {
	for _, members := range verbs {
		for _, v := range members {
			e := newEnv(System())
			if got := v.make(e).Name(); got != v.name {
				t.Errorf("%q makes %q", v.name, got)
			}
			if n := len(newRootCommand(e, chosen([]string{v.name, "--help"})).Commands()); n > 2 {
				t.Errorf("%s makes %d commands", v.name, n)
			}
		}
	}
}

func TestChosenVerb(t *testing.T) {
	all := len(newRootCommand(newEnv(System()), "").Commands())
	for _, args := range [][]string{nil, {"--help"}, {"help", "run"}, {"-v", "run"}, {"nonsense"}, {"__complete", "r"}} {
		if verb := chosen(args); verb != "" {
			t.Errorf("%q chooses %q", args, verb)
		}
	}
	if groups := slices.Concat(verbs[groupWork], verbs[groupMoney], verbs[groupSetup], verbs[groupOther]); all < len(groups) {
		t.Errorf("%d commands, %d verbs", all, len(groups))
	}
}
