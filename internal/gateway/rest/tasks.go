package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// taskEventBuffer is how many events of a task may wait to be added to its log.
const taskEventBuffer = 4096

// submit submits a task to its session, counts it against the caller's quota until
// it is over, and keeps a log of its events.
func (s *Server) submit(c *call, t session.Task) (*session.Record, bool, error) {
	if _, err := s.Sessions.Task(c.ctx(), c.view(), t.ID); !errors.Is(err, session.ErrNotFound) {
		return s.Sessions.Submit(c.ctx(), c.view(), t)
	}
	closed, err := s.active.admitTask()
	if err != nil {
		return nil, false, err
	}
	release, err := s.reserveTask(c)
	if err != nil {
		closed()
		return nil, false, err
	}
	end := func() { release(); closed() }
	name := taskID{accountOf(t.Key, t.Account), t.ID}
	watch := s.Sessions.Follow(name.account, name.id, taskEventBuffer)
	record, existing, err := s.Sessions.Submit(c.ctx(), c.view(), t)
	if err != nil || existing {
		watch.Close()
		end()
		return record, existing, err
	}
	log, fresh := s.active.tasks.open(name)
	go func() {
		defer end()
		if fresh {
			s.active.tasks.follow(name, log, watch, s.active.ctx.Done())
		}
		watch.Close()
		_, _ = s.Sessions.Wait(s.active.ctx, session.View{Account: name.account}, name.id)
	}()
	return record, false, nil
}

func (s *Server) reserveTask(c *call) (release func(), err error) {
	if s.Limits == nil {
		return func() {}, nil
	}
	return s.Limits.Begin(c.ctx(), c.caller)
}

// accountOf returns the account of a session key, as package session parses it.
func accountOf(key, account string) string {
	parsed, err := session.ParseKey(key, "main")
	if err != nil {
		return account
	}
	return cmp.Or(parsed.Account, account)
}

func (s *Server) getTask(c *call, _, _ *none) (*api.Task, error) {
	record, err := c.record()
	if err != nil {
		return nil, err
	}
	return s.billed(c.ctx(), record), nil
}

// billed returns a task with its present cost, which may be known better than at
// its end.
func (s *Server) billed(ctx context.Context, record *session.Record) *api.Task {
	t := taskOf(record)
	if record.Report == nil || record.Terms.Run != "" { // several tasks may share a run that is named
		return t
	}
	if r, err := s.Store.Get(ctx, record.Report.Run); err == nil && r.Bill.Calls > 0 {
		t.MicroUSD = r.Bill.MicroUSD
	}
	return t
}

// record returns a task that the caller may see, or session.ErrNotFound.
func (c *call) record() (*session.Record, error) {
	record, err := c.Sessions.Task(c.ctx(), c.view(), c.path("id"))
	if errors.Is(err, session.ErrNotFound) {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "task_not_found", Detail: "there is no such task"}
	}
	return record, err
}

// cancelTask cancels one task, and waits for its end.
func (s *Server) cancelTask(c *call, _, _ *none) (*api.Task, error) {
	record, err := c.record()
	if err != nil {
		return nil, err
	}
	view := session.View{Account: record.Account}
	if !record.State.Over() {
		if _, err := s.Sessions.Abort(c.ctx(), view, record.Key, record.ID); err != nil {
			return nil, err
		}
		if record, err = s.Sessions.Wait(c.ctx(), view, record.ID); err != nil {
			return nil, err
		}
	}
	return taskOf(record), nil
}

// taskEvents returns a page of a task's events, or streams them.
func (s *Server) taskEvents(c *call, q *api.EventQuery, _ *none) error {
	record, err := c.record()
	if err != nil {
		return err
	}
	after, err := c.lastEvent(q.After)
	if err != nil {
		return err
	}
	if wantsEvents(c.r, true) {
		return c.streamTask(record, after)
	}
	page := &api.Events{Events: []api.Event{}, Over: record.State.Over()}
	if log := s.active.tasks.find(taskID{record.Account, record.ID}); log != nil {
		events, over, _ := log.after(after)
		page.Events, page.Over = append(page.Events, events...), over
	}
	return c.answer(http.StatusOK, page)
}

// logOf returns the log of a task that is under way, and begins one if there is
// none: earlier events are missing then. It is nil if the task is over and its log
// was dropped.
func (s *Server) logOf(r *session.Record) (*taskLog, error) {
	name := taskID{r.Account, r.ID}
	if log := s.active.tasks.find(name); log != nil || r.State.Over() {
		return log, nil
	}
	closed, err := s.active.admitTask()
	if err != nil {
		return nil, err
	}
	watch := s.Sessions.Follow(name.account, name.id, taskEventBuffer)
	log, fresh := s.active.tasks.open(name)
	if !fresh {
		watch.Close()
		closed()
		return log, nil
	}
	now, err := s.Sessions.Task(s.active.ctx, session.View{Account: name.account}, name.id)
	if err != nil || now.State.Over() { // it ended before anybody listened
		watch.Close()
		s.active.tasks.drop(name)
		closed()
		return nil, err
	}
	go func() {
		defer closed()
		s.active.tasks.follow(name, log, watch, s.active.ctx.Done())
	}()
	return log, nil
}

// streamTask sends the task as it is, its events, and the task as it ended.
func (c *call) streamTask(r *session.Record, after int64) error {
	leave, ok := c.active.openStream(c.caller.Token, c.Limit.Streams)
	if !ok {
		return fmt.Errorf("%w: %d streams of events are open", access.ErrTooMany, c.Limit.Streams)
	}
	defer leave()
	log, err := c.logOf(r)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("X-Accel-Buffering", "no")
	view := session.View{Account: r.Account}
	if err := c.sendTask("task", r); err != nil {
		return err
	}
	if log != nil {
		if err := c.followTask(log, after); err != nil {
			return err
		}
	}
	if r, err = c.Sessions.Wait(c.ctx(), view, r.ID); err != nil {
		return err
	}
	return c.sendTask("answer", r)
}

// followTask sends the events of a log until its end.
func (c *call) followTask(log *taskLog, after int64) error {
	beat := time.NewTicker(c.Limit.Heartbeat)
	defer beat.Stop()
	for {
		events, over, news := log.after(after)
		var b bytes.Buffer
		for i := range events {
			after = events[i].Seq
			if err := appendEvent(&b, &events[i]); err != nil {
				return err
			}
		}
		if b.Len() > 0 {
			if err := c.write(b.Bytes()); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-news:
		case <-c.ctx().Done():
			return context.Cause(c.ctx())
		case <-c.active.ctx.Done():
			return session.ErrDraining
		case <-beat.C:
			if err := c.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		}
	}
}

func (c *call) sendTask(name string, r *session.Record) error {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	if err := appendJSON(&b, taskOf(r)); err != nil {
		return err
	}
	return c.write(b.Bytes())
}

func taskOf(r *session.Record) *api.Task {
	t := &api.Task{
		ID: r.ID, Key: r.Key, Account: r.Account, Agent: r.Agent, SessionID: cmp.Or(r.Terms.Transcript, r.Session), State: string(r.State), Text: r.Text, Model: r.Model,
		Usage: api.Usage(r.Usage), MicroUSD: r.MicroUSD, Accepted: r.Accepted, Started: r.Started, Ended: r.Ended, Hint: r.Hint,
	}
	if r.Code != "" || r.Problem != "" {
		t.Error = &api.Failure{Code: r.Code, Message: strings.TrimSuffix(r.Problem, " ("+r.Hint+")")}
	}
	if p := r.Report; p != nil {
		t.Report = &api.Report{
			Run: p.Run, Sandbox: p.Sandbox, Backend: p.Backend, Image: p.Image, Model: p.Model, Turns: p.Turns, Calls: p.Calls, TookMs: p.TookMs,
			Unpriced: p.Unpriced, Delivery: (*api.Delivery)(p.Delivery),
		}
	}
	return t
}
