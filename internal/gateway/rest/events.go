package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run"
)

// runEvents returns a page of a run's events, or streams them until the run is
// over.
func (s *Server) runEvents(c *call, q *api.EventQuery, _ *none) error {
	r, err := c.run()
	if err != nil {
		return err
	}
	after, err := c.lastEvent(q.After)
	if err != nil {
		return err
	}
	if wantsEvents(c.r, true) {
		return c.streamEvents(r.ID, after)
	}
	events, err := s.Store.Events(c.ctx(), r.ID, after)
	if err != nil {
		return err
	}
	page := &api.Events{Events: []api.Event{}, Over: r.Step == run.Over && len(events) == 0}
	for i := range events {
		page.Events = append(page.Events, c.eventOf(&events[i]))
		page.Over = events[i].Type == api.EventDone
	}
	return c.answer(http.StatusOK, page)
}

// lastEvent returns the number of the last event that the reader has.
func (c *call) lastEvent(after int64) (int64, error) {
	last := c.r.Header.Get("Last-Event-ID")
	if last == "" {
		return after, nil
	}
	after, err := strconv.ParseInt(last, 10, 64)
	if err != nil || after < 0 {
		return 0, invalid(api.FieldError{Pointer: "Last-Event-ID", Detail: "must be the number of an event"})
	}
	return after, nil
}

// stream is one reader of a run's events. Unread events stay in the store, so a
// slow reader costs only its connection.
type stream struct {
	*call
	run   string
	after int64
	ended bool // the last event was sent
}

func (c *call) streamEvents(id string, after int64) error {
	leave, ok := c.active.openStream(c.caller.Token, c.Limit.Streams)
	if !ok {
		return fmt.Errorf("%w: %d streams of events are open", access.ErrTooMany, c.Limit.Streams)
	}
	defer leave()
	signal, quit := c.active.subscribe(id)
	defer quit()
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("X-Accel-Buffering", "no")
	s := &stream{call: c, run: id, after: after}
	if err := s.sendRun("run"); err != nil {
		return err
	}
	return s.follow(signal)
}

// follow sends events until the last one. It also ends for a run that is over and
// has no more events: after a crash the last event may be missing.
func (s *stream) follow(signal <-chan struct{}) error {
	beat := time.NewTicker(s.Limit.Heartbeat)
	defer beat.Stop()
	quiet := false
	for {
		over, more, err := s.sendPage()
		switch {
		case err != nil:
			return err
		case s.ended || over && !more && quiet:
			return s.sendRun("receipt")
		case more:
			continue
		}
		select {
		case <-s.ctx().Done():
			return context.Cause(s.ctx())
		case <-signal:
			quiet = false
		case <-time.After(s.Limit.Poll):
			quiet = over
		case <-beat.C:
			if err := s.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		}
	}
}

// sendPage sends the stored events, and reports whether the run was over before
// they were read.
func (s *stream) sendPage() (over, more bool, err error) {
	r, err := s.Store.Get(s.ctx(), s.run)
	if err != nil {
		return false, false, err
	}
	events, err := s.Store.Events(s.ctx(), s.run, s.after)
	if err != nil || len(events) == 0 {
		return r.Step == run.Over, false, err
	}
	var b bytes.Buffer
	for i := range events {
		e := s.eventOf(&events[i])
		if err := appendEvent(&b, &e); err != nil {
			return false, false, err
		}
		s.after, s.ended = e.Seq, e.Type == api.EventDone
	}
	return r.Step == run.Over, true, s.write(b.Bytes())
}

// sendRun sends the run as it is now, without a number: it is not an event of the
// run.
func (s *stream) sendRun(name string) error {
	r, err := s.Store.Get(s.ctx(), s.run)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	answer := s.runOf(r)
	if err := appendJSON(&b, &answer); err != nil {
		return err
	}
	return s.write(b.Bytes())
}

func appendEvent(b *bytes.Buffer, e *api.Event) error {
	fmt.Fprintf(b, "id: %d\nevent: %s\ndata: ", e.Seq, e.Type)
	return appendJSON(b, e)
}

// appendJSON writes the data line of an event and the empty line that ends it.
func appendJSON(b *bytes.Buffer, v any) error {
	if err := json.MarshalWrite(b, v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true)); err != nil {
		return err
	}
	b.WriteString("\n\n")
	return nil
}

// write sends bytes, and fails if the reader does not take them in time.
func (c *call) write(b []byte) error {
	c.setWriteTimeout(c.Limit.Send)
	if _, err := c.w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}
