package approval

import (
	"maps"
	"slices"
)

// The types of events.
const (
	EventAsked    = "asked"
	EventAnswered = "answered"
	EventExpired  = "expired"
)

// Event is a change of a question by this process.
type Event struct {
	Type     string
	Question Question
}

// Subscribe has f called for every event, after it is stored and in its order;
// cancel ends that. f must not block.
func (q *Queue) Subscribe(f func(Event)) (cancel func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.next
	q.next++
	q.subscribers[id] = f
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.subscribers, id)
	}
}

func (q *Queue) publish(events []Event) {
	if len(events) == 0 {
		return
	}
	q.mu.Lock()
	all := slices.Collect(maps.Values(q.subscribers))
	q.mu.Unlock()
	for _, e := range events {
		for _, f := range all {
			f(e)
		}
	}
}
