package wire

import "fmt"

// addition is something that a version of the protocol brought to requests.
type addition struct {
	version int
	name    string // "operation ping", or a field as in "exec.argv"
	used    func(*Request) bool
}

// additions are all that came after version 1. A guest ignores what it does not
// know, so whatever a request gains is listed here: a host then refuses to send
// it to a guest that is too old, instead of being misunderstood. Answers need no
// such list; a host finds out from what is missing in them.
func additions() []addition {
	return []addition{
		{2, "operation grant.open", func(r *Request) bool { return r.Op == OpGrantOpen }},
		{2, "operation grant.end", func(r *Request) bool { return r.Op == OpGrantEnd }},
		{2, "operation taken", func(r *Request) bool { return r.Op == OpAckLast }},
		{2, "grant", func(r *Request) bool { return r.Grant != nil }},
		{2, "grant.id", func(r *Request) bool { return r.Grant != nil && r.Grant.ID != "" }},
		{2, "grant.graceMs", func(r *Request) bool { return r.Grant != nil && r.Grant.GraceMs != 0 }},
		{2, "exec.grant", func(r *Request) bool { return r.Exec != nil && r.Exec.Grant != "" }},
		{2, "exec.while", func(r *Request) bool { return r.Exec != nil && r.Exec.While != "" }},
		{2, "port.who", func(r *Request) bool { return r.Port != nil && r.Port.WithGrant }},
	}
}

// Understood returns nil if a guest that speaks this version understands all of
// the request, else an *Error that names what it does not.
func Understood(version int, req *Request) error {
	if version >= MaxVersion {
		return nil
	}
	for _, a := range additions() {
		if version < a.version && a.used(req) {
			return Fail(CodeUnsupported, fmt.Sprintf("%q needs version %d of the protocol, and the guest of this sandbox speaks version %d: recreate the sandbox", a.name, a.version, version))
		}
	}
	return nil
}
