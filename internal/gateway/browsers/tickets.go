package browsers

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

const (
	// TicketLife is how long a ticket can be used.
	TicketLife = 60 * time.Second
	// maxTickets is how many tickets of one token wait to be used.
	maxTickets = 64
)

// errTickets is returned to a token that has too many tickets.
var errTickets = errhint.With(errors.New("too many tickets of this token wait to be used"), "use them, or wait a minute")

// ticket lets one connection in.
type ticket struct {
	caller   *access.Caller
	browser  string // the name of its sandbox
	endpoint endpoint
	tab      string // that a viewer sees
	control  bool   // a viewer may take the browser over
	expires  time.Time
}

// endpoint is what a ticket is for.
type endpoint string

const (
	endpointCDP  endpoint = "cdp"
	endpointView endpoint = "view"
	// endpointWindow is the endpoint of a browser's window.
	endpointWindow endpoint = "vnc"
)

// tickets are those that were not used yet, by the hash of their text.
type tickets struct {
	now func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]*ticket
}

// issue keeps a ticket and returns its text.
func (t *tickets) issue(one *ticket) (string, error) {
	text := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	now, waiting := t.now(), 0
	maps.DeleteFunc(t.open, func(_ [sha256.Size]byte, old *ticket) bool { return !now.Before(old.expires) })
	for _, old := range t.open {
		if old.caller.Token == one.caller.Token {
			waiting++
		}
	}
	if waiting >= maxTickets {
		return "", errTickets
	}
	one.expires = now.Add(TicketLife)
	t.open[sha256.Sum256([]byte(text))] = one
	return text, nil
}

// redeem returns the ticket of a text, once; nil if there is none for this endpoint of this
// browser.
func (t *tickets) redeem(text, browser string, d endpoint) *ticket {
	key := sha256.Sum256([]byte(text))
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.open[key]
	if found == nil || found.browser != browser || found.endpoint != d {
		return nil
	}
	delete(t.open, key)
	if !t.now().Before(found.expires) {
		return nil
	}
	return found
}
