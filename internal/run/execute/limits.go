package execute

import (
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// runLimits holds the quotas of the runs of this process.
type runLimits struct {
	mu   sync.Mutex
	runs map[string]session.Quota
}

// limitRun remembers what a run may take until it is forgotten. Who asks for a run
// that is under way changes nothing.
func (q *runLimits) limitRun(id string, quota session.Quota) (forget func()) {
	if quota == (session.Quota{}) {
		return func() {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs == nil {
		q.runs = map[string]session.Quota{}
	}
	if _, limited := q.runs[id]; limited {
		return func() {}
	}
	q.runs[id] = quota
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.runs, id)
	}
}

// ofRun returns the run's quota; the zero quota means unlimited.
func (q *runLimits) ofRun(id string) session.Quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.runs[id]
}

// LimitRun bounds what a run may take until forget is called.
func (e *Executor) LimitRun(id string, quota session.Quota) (forget func()) {
	return e.limits.limitRun(id, quota)
}
