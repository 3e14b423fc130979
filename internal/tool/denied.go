package tool

import (
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// DeniedError is a call that policy refuses. Its text is for the model: what
// was refused, why, and what would change it.
type DeniedError struct {
	Tool    string
	Message string
}

func (e *DeniedError) Error() string { return e.Message }

// Unwrap makes it a sandbox.ErrDenied.
func (e *DeniedError) Unwrap() error { return sandbox.ErrDenied }

// Decide answers whether the session may use a tool.
func (t Tool) Decide(p policy.ToolPolicy) policy.Decision {
	d := p.Decide(t.Name)
	if d.Allowed || t.As == "" || d.Rule != "" {
		return d
	}
	if as := p.Decide(t.As); as.Allowed {
		as.Reason += " (as " + t.As + ")"
		return as
	}
	return d
}

// NotAvailable is why a tool cannot be used that a list names and Atoll has not.
const NotAvailable = "not available in this version"

// Decide answers whether the session may use the tool of a name, which may be one
// that does not exist here.
func Decide(p policy.ToolPolicy, name string) policy.Decision {
	t, ok := Find(name)
	if !ok {
		return policy.Decision{Reason: NotAvailable}
	}
	return t.Decide(p)
}

// Allowed are the names of the tools that the session may use.
func Allowed(p policy.ToolPolicy) (names []string) {
	for _, t := range all() {
		if t.Decide(p).Allowed {
			names = append(names, t.Name)
		}
	}
	return names
}

// Caller is on whose behalf a tool is called.
type Caller struct {
	Policy  policy.ToolPolicy
	Mode    config.Mode // for the message of a refusal
	Session policy.SessionKey
}

// Authorize refuses a call that policy does not allow.
func (t Tool) Authorize(c Caller) error {
	d := t.Decide(c.Policy)
	if d.Allowed {
		return nil
	}
	blocked := policy.Blocked{Tool: t.Name, Mode: c.Mode, Session: c.Session, Decision: d}
	return &DeniedError{Tool: t.Name, Message: blocked.Message()}
}
