package audit

import "time"

// The events of connections out of a sandbox.
const (
	EgressOpened  = "opened"       // written before its first byte goes out, even that of a lookup
	EgressClosed  = "closed"       // with the bytes that it moved
	EgressDenied  = "denied"       // a name, a connection or a request was refused
	EgressRequest = "request"      // a request on an inspected connection was let through
	EgressLeak    = "leak-attempt" // a request was refused: a placeholder of a secret, or another credential, was where it may not be
)

// EgressEvent is a step of a connection out of a sandbox. It has no field for a
// path, a header or a body.
type EgressEvent struct {
	Time     time.Time
	Subject  Subject
	Sandbox  string
	Exec     string // the command inside that the caller descends from
	Event    string // opened, closed, denied, request, leak-attempt
	Name     string
	Port     int
	Mode     string // splice, inspect, http, tcp
	Method   string // of a request
	Rule     string // that decided
	Reason   string // of a refusal, or of an end that is not the connection's own
	Route    string // the address or the proxy that was connected to
	BytesOut int64
	BytesIn  int64
	Duration time.Duration
}

func (e *EgressEvent) header() (Kind, time.Time, *Subject) { return Egress, e.Time, &e.Subject }

// limited reports whether the sandbox can cause any number of the event. The
// number of connections is bounded by the limits of egress.
func (e *EgressEvent) limited() bool {
	return e.Event == EgressDenied || e.Event == EgressRequest || e.Event == EgressLeak
}

// reasonMember is the member that has the reason: that of all refusals, or of an
// end.
func (e *EgressEvent) reasonMember() string {
	if e.Event == EgressDenied {
		return "denied"
	}
	return "reason"
}

func (e *EgressEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(appendText(b, "sandbox", e.Sandbox), "exec", e.Exec), "event", e.Event)
	b = appendNumber(appendText(b, "name", redact(e.Name, scrub)), "port", int64(e.Port))
	b = appendText(appendText(b, "mode", e.Mode), "method", redact(e.Method, scrub))
	b = appendText(appendText(appendText(b, "rule", e.Rule), e.reasonMember(), redact(e.Reason, scrub)), "route", e.Route)
	b = appendNumber(appendNumber(b, "bytesOut", e.BytesOut), "bytesIn", e.BytesIn)
	return appendNumber(b, "totalMicros", e.Duration.Microseconds())
}
