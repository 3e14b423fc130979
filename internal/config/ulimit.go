package config

import (
	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/amount"
)

// Ulimit is one entry of docker.ulimits: a string, a number, or soft and hard.
type Ulimit = amount.Ulimit

func checkUlimit(n *node) (message, hint string) {
	var u Ulimit
	if n.kind == '{' && len(n.members) == 0 {
		return `expected "soft", "hard" or both`, ""
	}
	if err := json.Unmarshal(n.json(), &u); err != nil {
		return "", "" // the types of soft and hard are reported on their own
	}
	if _, _, err := u.Values(); err != nil {
		return err.Error(), ""
	}
	return "", ""
}
