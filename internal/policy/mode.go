package policy

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
)

// Sandboxed decides whether a session's tools work in a sandbox, and says why.
// A mode that it does not know is taken for the strictest.
func Sandboxed(mode config.Mode, session SessionKey) (bool, string) {
	switch {
	case mode == config.ModeOff:
		return false, "sandbox.mode is off"
	case mode == config.ModeNonMain && session.Main:
		return false, fmt.Sprintf("sandbox.mode is non-main and %q is the main session", session.Key)
	case mode == config.ModeNonMain:
		return true, fmt.Sprintf("sandbox.mode is non-main and the main session is %q", session.MainKey)
	case mode == config.ModeAll:
		return true, "sandbox.mode is all"
	}
	return true, fmt.Sprintf("sandbox.mode %q is not known", mode)
}
