package run

// The things that a run can wait for, beside its branch.
const (
	// WaitsForTurn means that as many runs as allowed are under way.
	WaitsForTurn = "turn"
	// WaitsForPerson means that a person decides about its commits.
	WaitsForPerson = "approval"
)

// WaitingFor returns what the run waits for: "" if for nothing, the words of the
// branch's lock, WaitsForTurn or WaitsForPerson.
func (r *Receipt) WaitingFor() string {
	switch {
	case r.Step == Accepted && r.Waiting != "":
		return r.Waiting
	case r.Step == Accepted:
		return WaitsForTurn
	case r.Delivery != nil && r.Delivery.State == waiting:
		return WaitsForPerson
	}
	return ""
}
