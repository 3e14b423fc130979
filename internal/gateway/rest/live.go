package rest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// The bounds of live lists.
const (
	liveRuns     = 100
	liveBoxes    = 1000
	liveSessions = 100
	liveBuffer   = 1024 // events of sessions that wait to be read
	// boxesAge is how old a list of all sandboxes may be; it is shared by all accounts.
	boxesAge = 150 * time.Millisecond
	// driftAge is how old the drift in a live list may be: to find it, files of every
	// sandbox are read.
	driftAge = time.Minute
)

// SandboxUse is what a running sandbox of an account uses.
type SandboxUse struct {
	Name, Account string
	api.SandboxUsage
}

// Live reads what pages follow, as this interface shows it to the same caller.
type Live struct {
	server *Server

	mu     sync.Mutex
	at     time.Time
	boxes  []api.Sandbox
	drifts map[string]knownDrift // by name
}

// knownDrift is the drift of a sandbox at some time.
type knownDrift struct {
	at    time.Time
	made  int64 // when the sandbox was
	drift *api.Drift
}

var _ live.Source = (*Live)(nil)

// Live returns the source of package live.
func (s *Server) Live() *Live { return &Live{server: s, drifts: map[string]knownDrift{}} }

// as returns a call of a caller without a request of its own.
func (l *Live) as(ctx context.Context, c *access.Caller) *call {
	return &call{Server: l.server, caller: c, r: (&http.Request{}).WithContext(ctx)}
}

// Rows implements live.Source.
func (l *Live) Rows(ctx context.Context, caller *access.Caller, topic string) ([]live.Row, error) {
	c := l.as(ctx, caller)
	switch topic {
	case live.TopicRuns:
		return l.runs(c)
	case live.TopicSandboxes:
		return l.sandboxes(c)
	case live.TopicCounts:
		return l.counts(c)
	case live.TopicUsage:
		return l.usage(c)
	case live.TopicApprovals:
		answer, err := l.server.listApprovals(c, &api.ApprovalQuery{}, nil)
		return rowsOf(err, func() []api.Approval { return answer.Approvals }, func(a *api.Approval) string { return a.ID })
	case live.TopicBrowsers:
		if c.Browsers == nil {
			return nil, nil
		}
		answer, err := listBrowsers(c, &api.BrowserQuery{}, nil)
		return rowsOf(err, func() []api.Browser { return answer.Browsers }, func(b *api.Browser) string { return b.Name })
	case live.TopicSessions:
		answer, err := l.server.listSessions(c, &api.SessionQuery{Limit: liveSessions}, nil)
		return rowsOf(err, func() []api.Session { return answer.Sessions }, func(s *api.Session) string { return s.Account + " " + s.Key })
	case live.TopicCost:
		return l.cost(c)
	case live.TopicHealth:
		return l.health(c)
	}
	return nil, errors.New("there is no such topic")
}

// rowsOf converts a list, unless there was an error.
func rowsOf[T any](err error, list func() []T, key func(*T) string) ([]live.Row, error) {
	if err != nil {
		return nil, err
	}
	all := list()
	rows := make([]live.Row, 0, len(all))
	for i := range all {
		text, err := json.Marshal(&all[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, live.Row{Key: key(&all[i]), JSON: text})
	}
	return rows, nil
}

// runs returns the latest runs, in short.
func (l *Live) runs(c *call) ([]live.Row, error) {
	f, err := c.runFilter(&api.RunQuery{Limit: liveRuns})
	if err != nil {
		return nil, err
	}
	receipts, err := c.Store.List(c.ctx(), *f)
	return rowsOf(err, func() (list []api.Run) {
		for i := range receipts {
			if c.caller.Sees(receipts[i].Account) {
				list = append(list, c.listed(&receipts[i], "summary"))
			}
		}
		return list
	}, func(r *api.Run) string { return r.ID })
}

// sandboxes returns the sandboxes that were used last.
func (l *Live) sandboxes(c *call) ([]live.Row, error) {
	all, err := l.allBoxes(c.ctx())
	if err != nil {
		return nil, err
	}
	list, err := c.visibleOf(all, c.caller.Account)
	list = list[:min(len(list), liveBoxes)]
	l.addDrift(list)
	for i := range list {
		c.hide(&list[i])
	}
	return rowsOf(err, func() []api.Sandbox { return list }, func(s *api.Sandbox) string { return s.ContainerName })
}

// addDrift adds the drift of sandboxes, as it was at most driftAge ago.
func (l *Live) addDrift(list []api.Sandbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.drifts, func(_ string, d knownDrift) bool { return now.Sub(d.at) > driftAge })
	var unknown []api.Sandbox
	for i := range list {
		if d, ok := l.drifts[list[i].ContainerName]; !ok || d.made != list[i].CreatedAtMs {
			unknown = append(unknown, list[i])
		}
	}
	l.server.Sandboxes.AddDrift(unknown)
	for i := range unknown {
		l.drifts[unknown[i].ContainerName] = knownDrift{now, unknown[i].CreatedAtMs, unknown[i].Drift}
	}
	for i := range list {
		list[i].Drift = l.drifts[list[i].ContainerName].drift
	}
}

// counts returns how many sandboxes there are.
func (l *Live) counts(c *call) ([]live.Row, error) {
	all, err := l.allBoxes(c.ctx())
	if err != nil {
		return nil, err
	}
	list, err := c.visibleOf(all, c.caller.Account)
	n := api.LiveCounts{Sandboxes: len(list)}
	for i := range list {
		if list[i].Running {
			n.Running++
		}
	}
	return rowsOf(err, func() []api.LiveCounts { return []api.LiveCounts{n} }, func(*api.LiveCounts) string { return "all" })
}

// allBoxes returns the sandboxes of all accounts, read at most once in a moment.
func (l *Live) allBoxes(ctx context.Context) ([]api.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < boxesAge {
		return l.boxes, nil
	}
	list, err := l.server.Sandboxes.List(ctx)
	if err == nil {
		l.boxes, l.at = list, time.Now()
	}
	return list, err
}

func (l *Live) usage(c *call) ([]live.Row, error) {
	if l.server.Usage == nil {
		return nil, nil
	}
	all, err := l.server.Usage(c.ctx())
	var seen []SandboxUse
	for i := range all {
		if c.caller.Sees(all[i].Account) {
			seen = append(seen, all[i])
		}
	}
	rows, err := rowsOf(err, func() (list []api.SandboxUsage) {
		for i := range seen {
			list = append(list, seen[i].SandboxUsage)
		}
		return list
	}, func(*api.SandboxUsage) string { return "" })
	for i := range rows {
		rows[i].Key = seen[i].Name
	}
	return rows, err
}

// cost returns what accounts spent since midnight, in UTC.
func (l *Live) cost(c *call) ([]live.Row, error) {
	points, err := c.Ledger.Series(c.ctx(), usage.Filter{Account: c.caller.Account, Since: time.Now().UTC().Truncate(24 * time.Hour)}, "account", 24*time.Hour)
	return rowsOf(err, func() (list []api.AccountCost) {
		for _, p := range points {
			if c.caller.Sees(p.Key) {
				list = append(list, api.AccountCost{Account: p.Key, Calls: p.Calls, Tokens: p.Tokens, MicroUSD: p.MicroUSD, Provisional: p.Provisional, Unpriced: p.Unpriced})
			}
		}
		return list
	}, func(a *api.AccountCost) string { return a.Account })
}

func (l *Live) health(c *call) ([]live.Row, error) {
	h := api.LiveHealth{Ready: true, Version: l.server.Version}
	if err := l.server.Ready(c.ctx()); err != nil {
		h.Ready = false
		if !c.isBound() {
			h.Detail = err.Error()
		}
	}
	return rowsOf(nil, func() []api.LiveHealth { return []api.LiveHealth{h} }, func(*api.LiveHealth) string { return "gateway" })
}

// Run implements live.Source.
func (l *Live) Run(ctx context.Context, caller *access.Caller, id string, after int64) (*api.Run, []api.Event, error) {
	c := l.as(ctx, caller)
	c.r.SetPathValue("id", id)
	r, err := c.run()
	if err != nil {
		return nil, nil, err
	}
	stored, err := c.Store.Events(ctx, r.ID, after)
	events := make([]api.Event, 0, len(stored))
	for i := range stored {
		events = append(events, c.eventOf(&stored[i]))
	}
	answer := c.runOf(r)
	return &answer, events, err
}

// FollowRun implements live.Source.
func (l *Live) FollowRun(id string) (signal chan struct{}, quit func()) {
	return l.server.active.subscribe(id)
}

// Session implements live.Source.
func (l *Live) Session(ctx context.Context, caller *access.Caller, key string) (*api.Session, error) {
	c := l.as(ctx, caller)
	c.r.SetPathValue("key", key)
	return l.server.getSession(c, nil, nil)
}

// FollowSessions implements live.Source.
func (l *Live) FollowSessions(caller *access.Caller) *session.Subscription {
	return l.server.Sessions.Subscribe(l.as(context.Background(), caller).view(), liveBuffer)
}

// Event implements live.Source.
func (l *Live) Event(e *session.Event) (api.Event, bool) { return taskEvent(e) }

// Problem implements live.Source.
func (l *Live) Problem(caller *access.Caller, err error) *api.Problem {
	return l.as(context.Background(), caller).problem(err)
}
