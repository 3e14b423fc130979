package live

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

const (
	keptDeltas = 64                     // for clients that come again, or are slow
	keptBytes  = 1 << 20                // of those
	linger     = 30 * time.Second       // that a feed is kept without clients
	readEvery  = 200 * time.Millisecond // a topic is read at most so often
)

// feedName identifies a feed: callers of one account see the same.
type feedName struct{ account, topic string }

// feed is what a topic shows to the callers of an account, and what changed lately.
type feed struct {
	name   feedName
	caller *access.Caller // one that sees what all of the account see
	source Source
	bell   chan struct{}
	stop   context.CancelFunc

	mu      sync.Mutex
	conns   map[*conn]bool
	rows    map[string]string // JSON by key; nil until it was read once
	keys    []string          // of rows, in order
	saying  []api.Event       // of a session: what is being said, for those who come now
	err     error             // of the last read
	seq     int64
	deltas  []delta
	bytes   int // of deltas
	current []byte
}

// delta is a message that leads from one number to the next.
type delta struct {
	seq  int64
	text []byte
}

// newFeed returns a feed that was not read yet. Numbers begin with the time, so that
// those of an earlier feed, or of an earlier gateway, are older.
func newFeed(name feedName, source Source) *feed {
	return &feed{
		name: name, caller: &access.Caller{Account: name.account, Scope: access.Read}, source: source, bell: make(chan struct{}, 1),
		conns: map[*conn]bool{}, seq: time.Now().UnixMilli() * 1000,
	}
}

// follow keeps the feed up to date until the context ends.
func (f *feed) follow(ctx context.Context) {
	if key, ok := strings.CutPrefix(f.name.topic, ofSession); ok {
		f.followSession(ctx, key)
		return
	}
	for {
		rows, err := f.source.Rows(ctx, f.caller, f.name.topic)
		f.set(rows, err)
		if sleep(ctx, readEvery) != nil {
			return
		}
		timer := time.NewTimer(refresh[f.name.topic] - readEvery)
		select {
		case <-ctx.Done():
		case <-f.bell:
		case <-timer.C:
		}
		if timer.Stop(); ctx.Err() != nil {
			return
		}
	}
}

// ring says that the topic has changed.
func (f *feed) ring() {
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

// set stores rows that were read and tells clients what changed.
func (f *feed) set(rows []Row, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	if err == nil {
		f.publish(f.change(rows), nil)
	}
	f.wakeAll()
}

// change replaces the rows and returns what differs from those before. The caller holds
// the lock.
func (f *feed) change(rows []Row) *api.LiveMessage {
	m := &api.LiveMessage{Type: api.LiveDelta, Topic: f.name.topic}
	before := f.rows
	f.rows, f.keys = make(map[string]string, len(rows)), f.keys[:0]
	for _, r := range rows {
		f.rows[r.Key], f.keys = string(r.JSON), append(f.keys, r.Key)
		if before[r.Key] != string(r.JSON) {
			m.Keys, m.Rows = append(m.Keys, r.Key), append(m.Rows, r.JSON)
		}
	}
	for key := range before {
		if _, ok := f.rows[key]; !ok {
			m.Removed = append(m.Removed, key)
		}
	}
	if before == nil {
		f.seq++
		f.current = nil
		return nil // a snapshot tells it
	}
	return m
}

// publish adds a message to those that clients get, unless nothing changed. The caller
// holds the lock.
func (f *feed) publish(m *api.LiveMessage, events []api.Event) {
	if m == nil || len(m.Keys)+len(m.Removed)+len(events) == 0 {
		return
	}
	f.seq++
	m.Seq, m.Events, f.current = f.seq, events, nil
	text, err := json.Marshal(m)
	if err != nil {
		f.deltas, f.bytes = nil, 0 // clients get a snapshot
		return
	}
	f.deltas, f.bytes = append(f.deltas, delta{f.seq, text}), f.bytes+len(text)
	for len(f.deltas) > keptDeltas || f.bytes > keptBytes && len(f.deltas) > 0 {
		f.bytes -= len(f.deltas[0].text)
		f.deltas = append([]delta(nil), f.deltas[1:]...)
	}
}

// wakeAll lets the clients look. The caller holds the lock.
func (f *feed) wakeAll() {
	for c := range f.conns {
		c.ring()
	}
}

// after returns the message that follows a number, and its own number: the next delta if
// it is kept, else a snapshot; nil if the client has all.
func (f *feed) after(seq int64) (text []byte, now int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		return nil, seq, f.err
	}
	if seq == f.seq {
		return nil, seq, nil
	}
	for _, d := range f.deltas {
		if d.seq == seq+1 {
			return d.text, d.seq, nil
		}
	}
	text, err = f.whole()
	return text, f.seq, err
}

// whole returns the snapshot of now. The caller holds the lock.
func (f *feed) whole() ([]byte, error) {
	if f.current != nil {
		return f.current, nil
	}
	m := &api.LiveMessage{Type: api.LiveSnapshot, Topic: f.name.topic, Seq: f.seq, Keys: f.keys, Events: f.saying}
	for _, key := range f.keys {
		m.Rows = append(m.Rows, json.RawMessage(f.rows[key]))
	}
	text, err := json.Marshal(m)
	f.current = text
	return text, err
}
