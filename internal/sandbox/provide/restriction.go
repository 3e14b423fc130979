package provide

import "github.com/atoll-run/atoll/internal/runtime/linux"

// HostFix is the setting of this machine that keeps this user from making
// sandboxes without an engine, and what root does about it, as a script; "" if
// there is none.
func HostFix(program string) (what, script string) {
	found := linux.FindUsernsRestriction()
	return found.Name, found.Fix(program)
}
