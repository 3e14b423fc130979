package devtools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// Session makes calls and receives events of one target, or of the browser itself.
type Session struct {
	conn *Conn
	id   string // "" is the browser
}

var _ cdp.Session = (*Session)(nil)

// Session returns the session of an id that the browser gave; "" is the browser's own.
func (c *Conn) Session(id string) *Session { return &Session{c, id} }

// Sibling returns the session of another id on the same connection.
func (s *Session) Sibling(id string) *Session { return s.conn.Session(id) }

// Err returns why the connection is over, or nil while it is open.
func (s *Session) Err() error { return s.conn.Err() }

// Call makes a call and waits for its answer.
func (s *Session) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, s.conn.CallTimeout)
	defer cancel()
	text, err := jsonv2.Marshal(params)
	if err != nil {
		return err
	}
	id, answers, err := s.conn.begin(s.id)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer s.conn.forget(id)
	if err := s.send(ctx, &message{ID: id, SessionID: s.id, Method: method, Params: text}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case m, ok := <-answers:
		return s.read(m, ok, method, result)
	}
}

// read takes the answer to a call; ok is false if the connection is over.
func (s *Session) read(m *message, ok bool, method string, result any) error {
	switch {
	case !ok:
		return fmt.Errorf("%s: %w", method, s.conn.Err())
	case m.Error != nil:
		return fmt.Errorf("%s: %w", method, m.Error)
	case m.SessionID != s.id:
		return fmt.Errorf("%s: the browser answered for another session", method)
	}
	if err := jsonv2.Unmarshal(jsonv2.Value(m.Result), result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (s *Session) send(ctx context.Context, m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.conn.write(ctx, text)
}

// subscription keeps the events of a method of one session until they are read.
type subscription struct {
	session, method string
	events          chan jsonv2.Value
}

// take keeps an event. Where too many wait, the oldest goes.
func (s *subscription) take(m *message) {
	if m.SessionID != s.session || m.Method != s.method || len(m.Params) > maxEvent {
		return
	}
	for {
		select {
		case s.events <- jsonv2.Value(m.Params):
			return
		default:
		}
		select {
		case <-s.events:
		default:
		}
	}
}

// Subscribe begins to keep the events of a method. cancel ends that.
func (s *Session) Subscribe(method string) (events <-chan jsonv2.Value, cancel func()) {
	kept := &subscription{s.id, method, make(chan jsonv2.Value, maxEvents)}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		close(kept.events)
		return kept.events, func() {}
	}
	c.subscriptions[kept] = struct{}{}
	return kept.events, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscriptions, kept)
	}
}

// ID returns the id that the browser gave it; "" is the browser's own.
func (s *Session) ID() string { return s.id }
