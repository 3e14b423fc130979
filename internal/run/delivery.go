package run

// Delivery is what became of a run's work on its branch.
type Delivery struct {
	Branch string `json:"branch"`
	State  string `json:"state,omitempty"` // how far it came: a step of the relay, kept or refused
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"` // all of it in words
	Error  string `json:"error,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// The states of work that has not left the host, beside those of the relay.
const (
	// Kept is work that is on the host and not on the branch.
	Kept = "kept"
	// Refused is work that could not be taken out as commits: its files are kept.
	Refused = "refused"
	// blocked, waiting and held are steps of the relay.
	blocked, waiting, held = "blocked", "waiting", "held"
)

// Denied reports whether the content policy keeps the work from being pushed.
func (d *Delivery) Denied() bool { return d != nil && (d.State == blocked || d.State == waiting) }

// Undelivered reports whether there is work that did not reach its branch on the
// remote. A run that changed nothing has none.
func (d *Delivery) Undelivered() bool {
	return d != nil && (d.Denied() || d.State == Kept || d.State == Refused || d.State == held || d.Error != "")
}
