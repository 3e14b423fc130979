package ws

import (
	"time"

	"github.com/atoll-run/atoll/internal/metrics"
)

// meters are the metrics of connections.
type meters struct {
	delay   *metrics.Histogram
	dropped *metrics.Counters
	lost    *metrics.Counters
}

// delays are the bounds of the histogram of event delays, in seconds.
func delays() []float64 {
	return []float64{.0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10, 30}
}

func newMeters(r *metrics.Registry) *meters {
	return &meters{
		delay: r.Histogram("atoll_gateway_event_delay_seconds", "Time from an event of a session until it was written to a connection.", delays()).With(),
		dropped: r.Counter("atoll_gateway_clients_dropped_total",
			"WebSocket clients that were given up: slow left too much unread, stalled took nothing for too long, silent did not answer a ping, late sent a message too slowly, large sent more at once than there is memory for.", "reason"),
		lost: r.Counter("atoll_gateway_events_lost_total", "Times that events came faster than they could be told."),
	}
}

// written observes the delay of events that were just written.
func (m *meters) written(batch []queuedFrame) {
	now := time.Now()
	for _, l := range batch {
		if !l.at.IsZero() {
			m.delay.Observe(now.Sub(l.at).Seconds())
		}
	}
}
