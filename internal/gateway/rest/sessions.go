package rest

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// Sessions is the session service; session.Service implements it.
type Sessions interface {
	Submit(ctx context.Context, v session.View, t session.Task) (*session.Record, bool, error)
	Wait(ctx context.Context, v session.View, id string) (*session.Record, error)
	Task(ctx context.Context, v session.View, id string) (*session.Record, error)
	Follow(account, id string, buffer int) *session.Subscription
	Subscribe(v session.View, buffer int) *session.Subscription
	Abort(ctx context.Context, v session.View, key, id string) ([]string, error)
	Get(ctx context.Context, v session.View, key string) (*session.Entry, error)
	List(ctx context.Context, v session.View, f session.Filter) ([]session.Entry, error)
	Patch(ctx context.Context, v session.View, key string, p session.Patch) (*session.Entry, error)
	Reset(ctx context.Context, v session.View, key string) (*session.Entry, error)
	Delete(ctx context.Context, v session.View, key string) (*session.Entry, error)
	History(ctx context.Context, v session.View, key string, most int) ([]chat.Message, error)
}

func (c *call) view() session.View {
	return session.View{Account: c.caller.Account, All: c.caller.Account == ""}
}

func (s *Server) listSessions(c *call, q *api.SessionQuery, _ *none) (*api.Sessions, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	most := cmp.Or(q.Limit, 100)
	list, err := s.Sessions.List(c.ctx(), c.view(), session.Filter{Account: account, Agent: q.Agent, Search: q.Search, Most: most, After: q.Cursor})
	if err != nil {
		return nil, err
	}
	page := &api.Sessions{Sessions: []api.Session{}}
	for i := range list {
		page.Sessions = append(page.Sessions, *sessionOf(&list[i]))
	}
	if len(list) == most {
		page.Next = list[len(list)-1].Cursor()
	}
	return page, nil
}

// sessionOf converts a session. Of headers it has the names only: their values may
// be secrets.
func sessionOf(e *session.Entry) *api.Session {
	return &api.Session{
		Key: e.Key, Account: e.Account, Agent: e.Agent, SessionID: e.ID, Label: e.Label, Model: e.Model, Headers: slices.Sorted(maps.Keys(e.Headers)),
		Levels: e.Levels, Created: e.Created, Updated: e.Updated, LastModel: e.LastModel, Total: api.Usage(e.Total), Aborted: e.Aborted,
	}
}

// sessionAnswer converts a session, unless there was an error.
func sessionAnswer(e *session.Entry, err error) (*api.Session, error) {
	if err != nil {
		return nil, err
	}
	return sessionOf(e), nil
}

func (s *Server) getSession(c *call, _, _ *none) (*api.Session, error) {
	return sessionAnswer(s.Sessions.Get(c.ctx(), c.view(), c.path("key")))
}

func (s *Server) patchSession(c *call, _ *none, b *api.SessionPatch) (*api.Session, error) {
	return sessionAnswer(s.Sessions.Patch(c.ctx(), c.view(), c.path("key"), session.Patch{Label: b.Label, Model: b.Model, Headers: b.Headers, Levels: b.Levels}))
}

func (s *Server) resetSession(c *call, _, _ *none) (*api.Session, error) {
	return sessionAnswer(s.Sessions.Reset(c.ctx(), c.view(), c.path("key")))
}

func (s *Server) deleteSession(c *call, _, _ *none) (*api.Session, error) {
	return sessionAnswer(s.Sessions.Delete(c.ctx(), c.view(), c.path("key")))
}

func (s *Server) abortSession(c *call, _, _ *none) (*api.Aborted, error) {
	ids, err := s.Sessions.Abort(c.ctx(), c.view(), c.path("key"), "")
	return &api.Aborted{IDs: append([]string{}, ids...)}, err
}

func (s *Server) sessionHistory(c *call, q *api.HistoryQuery, _ *none) (*api.History, error) {
	list, err := s.Sessions.History(c.ctx(), c.view(), c.path("key"), cmp.Or(q.Limit, 200))
	if err != nil {
		return nil, err
	}
	answer := &api.History{Messages: []api.HistoryMessage{}}
	for _, m := range list {
		said := api.HistoryMessage{Role: string(m.Role), Content: m.Text, CallID: m.CallID, IsError: m.IsError, At: m.At}
		for _, call := range m.Calls {
			said.Calls = append(said.Calls, api.Call(call))
		}
		answer.Messages = append(answer.Messages, said)
	}
	return answer, nil
}

// send submits a message to a session: it answers 202 at once, with an event
// stream, or with the finished task, as the request prefers.
func (s *Server) send(c *call, _ *none, b *api.SendRequest) error {
	task, err := c.sessionTask(b)
	if err != nil {
		return err
	}
	record, existing, err := s.submit(c, *task)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/api/v1/tasks/"+task.ID)
	switch {
	case prefersAsync(c.r):
		c.w.Header().Set("Preference-Applied", "respond-async")
		return c.answer(http.StatusAccepted, taskOf(record))
	case wantsEvents(c.r, false):
		return c.streamTask(record, 0)
	}
	if !existing || !record.State.Over() {
		if record, err = s.Sessions.Wait(c.ctx(), session.View{Account: record.Account}, record.ID); err != nil {
			return err
		}
	}
	return c.answer(http.StatusOK, taskOf(record))
}
