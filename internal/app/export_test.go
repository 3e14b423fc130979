package app

import "github.com/atoll-run/atoll/internal/relay"

// What only tests reach: the second step of removals, without the first.
var IfGone = (*App).ifGone

// RelaySite is a session's sandbox as the relay sees it.
func RelaySite(s *Session) relay.Site {
	return relay.Site{Place: relayPlace{s}, Root: s.Plan.Spec.Workdir, Link: "repo"}
}
