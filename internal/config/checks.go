package config

import (
	"strings"

	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// valueCheck looks at one value, or one key of a record, and returns what is
// wrong with it and what to do, or two empty strings. Its messages never repeat
// a value that may be a secret.
type valueCheck func(n *node) (message, hint string)

// valueChecks are the checks that tags name and that need more than a text.
var valueChecks = map[string]valueCheck{
	"agentID":  checkAgentID,
	"listedID": checkListedID,
	"size":     checkSize,
	"amount":   checkAmount,
	"swap":     checkSwap,
	"ulimit":   checkUlimit,
}

// checkNamed returns the check that a tag names: one of values, or one of text,
// which other values pass.
func checkNamed(name string) valueCheck {
	if check := valueChecks[name]; check != nil {
		return check
	}
	check := textcheck.Named(name)
	if check == nil {
		return nil
	}
	return func(n *node) (message, hint string) {
		if n.kind != '"' {
			return "", ""
		}
		return check(n.text)
	}
}

func checkAgentID(n *node) (message, hint string) {
	if !agentIDForm.MatchString(n.text) {
		return "an agent id must be 1 to 64 letters, digits, '_' and '-', not starting with '-'", ""
	}
	return "", ""
}

func checkListedID(n *node) (message, hint string) {
	if strings.TrimSpace(n.text) == "" {
		return "must not be empty", ""
	}
	if id := NormalizeAgentID(n.text); len(n.text) > MaxAgentID {
		return "an agent id has at most 64 characters", "this one would be cut to " + wording.Quote(id)
	}
	return "", ""
}
