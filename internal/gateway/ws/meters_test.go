package ws_test

import (
	"strconv"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// Every event is counted once for each connection that it was written to, and
// answers are not.
func TestDelaysAreCounted(t *testing.T) {
	p := gateway(t, ws.Limits{})
	const counted = "atoll_gateway_event_delay_seconds_count"
	one, two := p.connect(4, fixed), p.connect(3, fixed)
	one.must("health", nil)
	if n := p.counted(counted); n != "0" {
		t.Errorf("%s events before there was one", n)
	}
	one.must("agent", map[string]any{"message": "hello", "idempotencyKey": "r", "sessionKey": "main"})
	for _, e := range []*peer{one, two} {
		e.event("chat", map[string]string{"runId": "r", "state": "final"})
	}
	arrived := one.arrived("r") + two.arrived("r")
	p.until("all are counted", func() bool { return p.counted(counted) == strconv.Itoa(arrived) })
	if sum, err := strconv.ParseFloat(p.counted("atoll_gateway_event_delay_seconds_sum"), 64); err != nil || sum <= 0 || sum > float64(arrived)*testTimeout.Seconds() {
		t.Errorf("they waited %v s together, %v", sum, err)
	}
}

// arrived is the number of events of a task that arrived.
func (e *peer) arrived(run string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.frames {
		if f.Type == "event" && f.text("runId") == run {
			n++
		}
	}
	return n
}
