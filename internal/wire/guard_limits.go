package wire

import (
	"fmt"
	"time"
)

// rateLimit allows limit events in each AnomalyWindow.
type rateLimit struct {
	limit int
	used  int
	since time.Time
}

func (b *rateLimit) allow(now time.Time) bool {
	if now.Sub(b.since) > AnomalyWindow {
		b.used, b.since = 0, now
	}
	b.used++
	return b.used <= b.limit
}

// anomalyLog counts yamux's warnings. Single ones are harmless; more than
// MaxAnomalies in AnomalyWindow close the wire.
type anomalyLog struct{ guard *guard }

func (l anomalyLog) Print(...any)          { l.count() }
func (l anomalyLog) Printf(string, ...any) { l.count() }
func (l anomalyLog) Println(...any)        { l.count() }

func (l anomalyLog) count() {
	if !l.guard.allow(&l.guard.anomalies) {
		_ = l.guard.fail(fmt.Errorf("%w: more than %d stray frames in %v", ErrProtocol, MaxAnomalies, AnomalyWindow))
	}
}
