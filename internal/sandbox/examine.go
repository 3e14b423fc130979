package sandbox

import "context"

// FindingLevel says how bad a Finding is.
type FindingLevel string

// The levels: in order, worth a look, in the way of every sandbox.
const (
	FindingOK      FindingLevel = "ok"
	FindingWarning FindingLevel = "warning"
	FindingFailed  FindingLevel = "failed"
)

// A Finding is one thing that was found out about the place where a runtime makes
// sandboxes, and what mends it.
type Finding struct {
	Name   string
	Level  FindingLevel
	Detail string
	Remedy string
}

// An Examiner is a runtime whose sandboxes are on other machines: it finds out what those
// lack for a sandbox of a spec. It may make one for that, and removes it.
type Examiner interface {
	Examine(ctx context.Context, spec *Spec) []Finding
}
