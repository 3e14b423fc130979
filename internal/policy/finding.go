package policy

import "fmt"

// Finding is one thing in a configuration that must be refused.
type Finding struct {
	Field   string `json:"field"` // e.g. sandbox.docker.binds[1]
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Cause is the field that is in conflict with Field; "" if there is none. It
	// was written by a person, while Field may have its default.
	Cause string `json:"cause,omitempty"`
}

// findings collects what a check found.
type findings []Finding

func (f *findings) add(field, hint, format string, args ...any) {
	*f = append(*f, Finding{
		Field:   "sandbox.docker." + field,
		Message: "Sandbox security: " + fmt.Sprintf(format, args...),
		Hint:    hint,
	})
}
