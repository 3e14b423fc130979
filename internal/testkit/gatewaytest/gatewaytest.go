// Package gatewaytest starts a gateway for tests and examples: the real listener,
// tokens, HTTP interface, session service, run store and runner. Only its agents
// are not real: a run's task is a shell script, which runs without a sandbox, and a
// session answers with the message.
package gatewaytest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
)

// Gateway is a running gateway on a free port of this machine.
type Gateway struct {
	URL   string
	Token string // an admin token
	stop  []func()
}

// Start starts a gateway in a directory of its own. The caller has to Close it.
func Start(ctx context.Context) (g *Gateway, err error) {
	g = &Gateway{}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		return g, err
	}
	g.defers(func() { _ = os.RemoveAll(dir) })
	db, err := store.Open(ctx, filepath.Join(dir, "atoll.db"))
	if err != nil {
		return g, err
	}
	g.defers(func() { _ = db.Close() })
	return g, g.serve(ctx, db, dir)
}

// serve opens the services on a database, and listens.
func (g *Gateway) serve(ctx context.Context, db *store.DB, dir string) error {
	locks, err := filelock.Open(filepath.Join(dir, "locks"))
	if err != nil {
		return err
	}
	tokens := access.NewTokenStore(access.TokenStoreOptions{DB: db})
	text, _, err := tokens.Create(ctx, access.Spec{Name: "test", Scope: access.Admin})
	if err != nil {
		return err
	}
	g.Token = text.Reveal()
	caller := &access.Access{Tokens: tokens, Throttle: access.NewThrottle(nil), Limiter: access.NewLimiter(access.LimiterOptions{})}
	runs := &Runs{run.New(run.Options{Store: run.Store{DB: db}, Locks: locks, Sandboxes: Host{}, Biller: Host{}, Variants: []run.Variant{Script(time.Minute)}})}
	sessions := session.New(session.Options{DB: db, Worker: Echo{}, Names: policy.Sessions{DefaultAgent: "main"}})
	g.defers(sessions.Close)
	handler := rest.New(rest.Options{
		Identify: caller.Identify, Limits: caller.Limiter, Sessions: sessions, Runs: runs, Store: run.Store{DB: db}, Version: "test",
		Ready: func(context.Context) error { return nil }, Agents: []rest.Catalogue{agents{}},
	})
	g.defers(handler.Close)
	server, err := gateway.Open(ctx, gateway.Options{Listen: []string{"127.0.0.1:0"}, REST: handler, Access: caller})
	if err != nil {
		return err
	}
	server.Start()
	g.URL = "http://" + server.Addresses()[0]
	g.defers(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = server.Close(ctx) // what it could not wait for is over with the process
	})
	return nil
}

func (g *Gateway) defers(f func()) { g.stop = append(g.stop, f) }

// Close ends the gateway and removes its directory.
func (g *Gateway) Close() {
	for _, f := range slices.Backward(g.stop) {
		f()
	}
	g.stop = nil
}

// Runs gives tasks to a runner.
type Runs struct{ *run.Runner }

// Begin accepts a task.
func (r *Runs) Begin(ctx context.Context, t *rest.Task) (*run.AcceptedRun, error) {
	return r.Accept(ctx, &run.Request{
		ID: t.ID, Variant: t.GraphID, Account: t.Account, Trace: t.Trace, Agent: "main", Model: cmp.Or(t.Model, "m"),
		Messages: t.Messages, Branch: t.Branch, TimeoutMs: t.Timeout.Milliseconds(),
	})
}

// Limit bounds nothing.
func (*Runs) Limit(string, session.Quota) func() { return func() {} }

// Bill returns a fixed bill.
func (*Runs) Bill(context.Context, string) (run.Bill, error) { return bill() }

func bill() (run.Bill, error) { return run.Bill{MicroUSD: 7, Source: "test"}, nil }

// agents lists the one agent.
type agents struct{}

// Agents returns the agent whose tasks are shell scripts.
func (agents) Agents(context.Context) ([]api.Agent, error) {
	return []api.Agent{{GraphID: "sandbox:agent", Name: "Script", Description: "A shell script."}}, nil
}

// errNoModel is returned for a model that no session can be set to.
var errNoModel = errors.New("no such model")
