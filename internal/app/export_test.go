package app

import "github.com/atoll-run/atoll/internal/relay"

// What only tests reach: the second step of removals, without the first.
var IfGone = (*App).ifGone

// RelaySite is a session's sandbox as the relay sees it.
func RelaySite(s *Session) relay.Site {
	return s.relaySite(relayBefore)
}

// SetFree has a value in place of what the disk says.
func (a *App) SetFree(free func() (int64, error)) { a.testFree = free }

// DiskReserve is what must stay free.
const DiskReserve = diskReserve
