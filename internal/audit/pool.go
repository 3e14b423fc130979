package audit

import "time"

// PoolEvent is a sandbox that was taken out of a pool for a name, or a pool whose size was
// changed.
type PoolEvent struct {
	Time    time.Time
	Subject Subject
	Event   string // claimed, resized
	Sandbox string // that it is from now on
	Member  string // its name in the pool
	Size    int    // of a pool that was resized
	By      string
}

func (e *PoolEvent) header() (Kind, time.Time, *Subject) { return Pool, e.Time, &e.Subject }
func (e *PoolEvent) limited() bool                       { return e.Event == PoolClaimed }
func (e *PoolEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(appendText(b, "event", e.Event), "sandbox", e.Sandbox), "member", e.Member)
	return appendText(appendNumber(b, "size", int64(e.Size)), "by", redact(e.By, scrub))
}

// The events of pools.
const (
	PoolClaimed = "claimed"
	PoolResized = "resized"
)
