// Package rule decides which connections and requests of a sandbox may leave.
// It is pure: it resolves no name and opens nothing. A decision looks a name up
// by its labels, so that its cost does not grow with the number of rules.
package rule

import "net/netip"

// Action says what happens to a connection that is allowed.
type Action string

// The actions.
const (
	Splice  Action = "splice"  // TLS is relayed as it is; the name in its greeting must be the one judged
	Inspect Action = "inspect" // TLS is opened, and every request is judged
	HTTP    Action = "http"    // HTTP without encryption is read, and every request is judged
	TCP     Action = "tcp"     // bytes are relayed
)

// Decision is the answer to a connection or a request.
type Decision struct {
	Allow  bool
	Ask    bool // a person may allow it; Allow is false
	Action Action
	// Rule is the rule that decided, as written, with its key and line; "" if
	// there is none.
	Rule   string
	Reason string // why it is denied, or allowed without a rule
	Hint   string // what to write to allow it
	// Secrets are the names of the secrets that may be put into the request, or,
	// of a connection, into any of its requests.
	Secrets   []string
	Upgrade   bool // plain HTTP is sent on with TLS, to port 443
	WebSocket bool // a request may become a WebSocket connection
	// Private are the networks that the addresses of the name may be in although
	// they are not public: those of the configuration, where a rule names it.
	Private  []netip.Prefix
	Unbilled bool // the host serves models, and nothing is counted or paid through the model proxy
}

func deny(reason, hint string) Decision { return Decision{Reason: reason, Hint: hint} }

// judgesRequests reports whether requests on the connection are read.
func (d *Decision) judgesRequests() bool { return d.Action == Inspect || d.Action == HTTP }
