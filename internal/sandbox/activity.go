package sandbox

import (
	"cmp"
	"context"
	"time"
)

// Activity is the start or the end of a sandbox, or a start that failed.
type Activity struct {
	Verb    string // create, claim, pool, recreate, start, restart, resume, fork, refuse or remove
	Name    string
	Backend string
	Kind    Kind
	Agent   string
	Account string
	Begun   time.Time
	Took    time.Duration // of a start; how long a sandbox that was removed had been there
	Err     error         // why it was not started
}

// The verbs of activities that are no decision about a name.
const (
	ActivityRemove = "remove" // a sandbox was removed
	ActivityClaim  = "claim"  // one of a pool was given to a name
	ActivityPool   = "pool"   // one was made for a pool
)

// watchStart reports a start to Watch. To reuse a running sandbox is none.
func (m *Manager) watchStart(ctx context.Context, spec *Spec, verb string, begun time.Time, err *error) {
	if m.Watch == nil || (verb == string(actReuse) || verb == string(actKeepHot)) && *err == nil {
		return
	}
	m.Watch(ctx, &Activity{
		Verb: verb, Name: spec.Name, Backend: spec.Backend, Kind: cmp.Or(spec.Kind, KindSandbox), Agent: spec.AgentID, Account: spec.Account,
		Begun: begun, Took: time.Since(begun), Err: *err,
	})
}

// watchRemoval returns what reports to Watch that a sandbox is gone. It looks at the
// row now, while there is one.
func (m *Manager) watchRemoval(ctx context.Context, name string) (report func()) {
	if m.Watch == nil {
		return func() {}
	}
	e, err := m.Registry.Get(ctx, name)
	if err != nil {
		return func() {}
	}
	return func() {
		made := time.UnixMilli(e.CreatedAtMs)
		m.Watch(ctx, &Activity{Verb: ActivityRemove, Name: name, Backend: e.Backend, Kind: e.Kind, Agent: e.AgentID, Account: e.Account, Begun: made, Took: m.Now().Sub(made)})
	}
}
