// Package escapetest attacks sandboxes from inside. One program tries the known
// ways out, each a test of its own; every runtime with walls must see each fail.
// The steps are real. Were one to work, it would touch a canary that the test
// made, open a file without writing, or change only the attacker itself.
//
// Wherever it can be done, the same step is made once without walls and must
// work there: a step that cannot work proves nothing.
//
// Nothing outside tests imports it.
package escapetest

import (
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Subject is a runtime under attack.
type Subject struct {
	// Open returns the runtime of a state directory.
	Open func(t *testing.T, stateDir string) sandbox.Runtime
	// Backend is the runtime's name in a spec.
	Backend string
	// Image is what sandboxes are made from; it need hold nothing.
	Image string
	// User runs the attacks: "uid:gid", or "" for the runtime's choice.
	User string
	// Limits says whether limits of processes and memory can be enforced here.
	// Where they cannot, asking for them must be refused.
	Limits bool
	// SharedUsers says that users inside are counted as those of the host with the
	// same number: what is counted by user, they use up together.
	SharedUsers bool
	// Engine says that sandboxes can have networks and capabilities, if asked for.
	Engine bool
	// Slow is a runtime whose starts take long: attacks that repeat them do so
	// less often.
	Slow bool
	// GuestFilesOpen says that User can write the guest's files in /proc: it is root,
	// and the runtime cannot make them read-only.
	GuestFilesOpen bool
	// Copies says that sandboxes have copies of the host's directories and nothing else
	// of them, and no user 0. Attacks that need more must be refused what they need.
	Copies bool
	// BridgeInside says that the host reaches the guest through a process of User, which
	// the others can end: who does so again and again breaks the own sandbox.
	BridgeInside bool
}

// Steps makes only the attacks that one sandbox takes unharmed.
func Steps(t *testing.T, s Subject) { runSteps(t, s) }

// Run attacks the runtime. In each group one sandbox serves all attacks that
// leave it as it is.
func Run(t *testing.T, s Subject) {
	t.Run("promises", func(t *testing.T) { checkPromises(newArena(t, s)) })
	t.Run("broken promises", func(t *testing.T) { checkBrokenPromises(newArena(t, s)) })
	t.Run("modes that lend rights", func(t *testing.T) { checkLendingModes(newArena(t, s)) })
	t.Run("steps", func(t *testing.T) { runSteps(t, s) })
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.test(newArena(t, s)) })
		}
	})
	t.Run("bombs", func(t *testing.T) { runBombs(t, s) })
}
