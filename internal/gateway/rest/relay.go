package rest

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
)

// Relay knows what became of the commits of runs.
type Relay interface {
	List(ctx context.Context) ([]api.RelayRecord, error)
	// Get returns fs.ErrNotExist if there is no record of a run.
	Get(ctx context.Context, run string) (*api.RelayRecord, error)
	// Patch returns what the commits of a run change, at most so many bytes of it.
	Patch(ctx context.Context, run string, most int) (*api.RelayPatch, error)
	// Push sends commits that were kept.
	Push(ctx context.Context, run string, approve bool, by string) (*api.RelayRecord, error)
	// Retry goes on with everything that was interrupted.
	Retry(ctx context.Context) ([]api.RelayRecord, error)
}

// withRelay is a route that needs the relay.
func withRelay[Q, B, A any](do func(c *call, query *Q, body *B) (*A, error)) shape {
	return answers(func(c *call, query *Q, body *B) (*A, error) {
		if c.Relay == nil {
			return nil, &api.Problem{Status: http.StatusNotImplemented, Code: "not_supported", Detail: "this gateway has no relay"}
		}
		return do(c, query, body)
	})
}

func listRelays(c *call, q *api.RelayQuery, _ *none) (*api.RelayRecords, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	all, err := c.Relay.List(c.ctx())
	if err != nil {
		return nil, err
	}
	answer := &api.RelayRecords{Relays: []api.RelayRecord{}}
	for i := range all {
		if !c.caller.Sees(all[i].Account) || account != "" && all[i].Account != account {
			continue
		}
		if answer.Total++; len(answer.Relays) < cmp.Or(q.Limit, 100) {
			answer.Relays = append(answer.Relays, *c.relayRecord(&all[i]))
		}
	}
	return answer, nil
}

// relayRecord returns a record as this caller may see it.
func (c *call) relayRecord(r *api.RelayRecord) *api.RelayRecord {
	if c.isBound() {
		r.Trouble, r.Note = publicerr.Text(r.Trouble), publicerr.Text(r.Note)
	}
	return r
}

// relayOf returns the record that the path names, if the caller may see it.
func (c *call) relayOf() (*api.RelayRecord, error) {
	r, err := c.Relay.Get(c.ctx(), c.path("run"))
	if err == nil && !c.caller.Sees(r.Account) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "relay_not_found", Detail: "the relay has no commits of such a run"}
	}
	return r, nil
}

func getRelay(c *call, _, _ *none) (*api.RelayRecord, error) {
	r, err := c.relayOf()
	if err != nil {
		return nil, err
	}
	return c.relayRecord(r), nil
}

// maxRelayPatch is how many bytes of a patch are shown.
const maxRelayPatch = 1 << 20

func getRelayPatch(c *call, _, _ *none) (*api.RelayPatch, error) {
	r, err := c.relayOf()
	if err != nil {
		return nil, err
	}
	p, err := c.Relay.Patch(c.ctx(), r.Run, maxRelayPatch)
	if err == nil && c.isBound() {
		p.Why = publicerr.Text(p.Why)
	}
	return p, err
}

func pushRelay(c *call, _ *none, b *api.RelayPush) (*api.RelayRecord, error) {
	r, err := c.relayOf()
	if err != nil {
		return nil, err
	}
	done, err := c.Relay.Push(c.ctx(), r.Run, b.Approve, c.person())
	c.Changed(live.TopicRuns)
	if err != nil {
		return nil, &api.Problem{Status: http.StatusConflict, Code: "relay_not_pushed", Detail: err.Error()}
	}
	return c.relayRecord(done), nil
}

// retryRelays is refused to callers bound to an account: it covers every account.
func retryRelays(c *call, _, _ *none) (*api.RelayRecords, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	list, err := c.Relay.Retry(c.ctx())
	return &api.RelayRecords{Relays: append([]api.RelayRecord{}, list...), Total: len(list)}, err
}
