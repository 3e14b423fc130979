package live

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// followSession keeps the feed of a session up to date until the context ends. After
// events were lost it begins anew.
func (f *feed) followSession(ctx context.Context, key string) {
	for ctx.Err() == nil {
		events := f.source.FollowSessions(f.caller)
		found, err := f.source.Session(ctx, f.caller, key)
		if err == nil {
			f.begin(found)
			f.readSession(ctx, key, found, events)
		} else {
			f.set(nil, err)
		}
		events.Close()
		if sleep(ctx, readEvery) != nil {
			return
		}
	}
}

// begin makes void what clients know of the session.
func (f *feed) begin(s *api.Session) {
	f.mu.Lock()
	f.rows, f.saying, f.deltas, f.bytes = nil, nil, nil, 0
	f.mu.Unlock()
	f.set(sessionRow(s))
}

func sessionRow(s *api.Session) ([]Row, error) {
	text, err := json.Marshal(s)
	return []Row{{Key: "session", JSON: text}}, err
}

// readSession passes events of the session on, until some are lost or it cannot be read.
func (f *feed) readSession(ctx context.Context, key string, found *api.Session, events *session.Subscription) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events.Events():
			if !ok {
				return
			}
			if e.Key != found.Key || e.Account != found.Account {
				continue
			}
			f.happened(&e)
			if e.Kind != session.Ended && e.Kind != session.Changed && e.Kind != session.Accepted {
				continue
			}
			now, err := f.source.Session(ctx, f.caller, key)
			if err != nil {
				f.lose(err)
				return
			}
			f.set(sessionRow(now))
		}
	}
}

// lose makes the feed fail for those who follow it: the session is gone.
func (f *feed) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows, f.err = nil, err
	f.wakeAll()
}

// happened publishes an event. A client that comes in the middle of an answer gets what
// was said of it so far.
func (f *feed) happened(e *session.Event) {
	event, ok := f.source.Event(e)
	if !ok {
		return
	}
	event.Task = e.Task
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.saying)
	f.saying = without(f.saying, e.Task)
	if e.Kind == session.Said {
		whole := event
		whole.Text = e.Text
		if before == len(f.saying) {
			event.Text = e.Text
		}
		f.saying = append(f.saying, whole)
	}
	f.publish(&api.LiveMessage{Type: api.LiveDelta, Topic: f.name.topic}, []api.Event{event})
	f.wakeAll()
}

// without returns events that are not of a task.
func without(all []api.Event, task string) (list []api.Event) {
	for i := range all {
		if all[i].Task != task {
			list = append(list, all[i])
		}
	}
	return list
}
