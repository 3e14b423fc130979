package host

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/service"
)

// agentLife bounds how long an agent may call models.
const agentLife = 24 * time.Hour

// chooseModels finds the models that may be asked, and opens connections of this
// agent alone to the proxy.
func (w *Worker) chooseModels(ctx context.Context, h *Host, o *Options) (err error) {
	if o.BeforeKeys != nil && !inside() {
		if err := o.BeforeKeys(); err != nil {
			return err
		}
	}
	models, candidates, err := h.models.ForAgent(ctx, w.Plan.Agent, service.Choice{Model: o.Model, Proxy: o.Models, Demo: o.Demo})
	if err != nil {
		return err
	}
	calls := &agentCalls{models: models}
	if w.settle = models.Close; o.Models != nil {
		w.settle = func() error { return w.settleShared(models) }
	}
	w.undo = append(w.undo, w.endModels)
	if w.ledger, err = h.models.Ledger(ctx); err != nil {
		return err
	}
	if models.Scripted() {
		w.Notices = append(w.Notices, service.ScriptedNotice)
	}
	embeds, err := w.embeddings(h, models)
	if err != nil {
		return err
	}
	if calls.auth, err = w.authenticate(models, o, append(candidates.IDs(), embeds.IDs()...)); err != nil {
		return err
	}
	calls.transport = &http.Transport{DialContext: calls.dial}
	w.undo = append(w.undo, func() error { calls.transport.CloseIdleConnections(); return nil })
	if err := w.remember(h, embeds, calls.transport); err != nil {
		return err
	}
	for _, c := range candidates {
		asker, err := chat.New(chat.Provider{API: c.API, BaseURL: "http://models/v1", Client: &http.Client{Transport: calls.transport}})
		if err != nil {
			return err
		}
		w.Models = append(w.Models, agent.Model{Name: c.Name, ID: c.ID, Asker: asker, ContextWindow: c.Window, MaxTokens: c.MaxTokens, Plain: c.Plain, NoImages: c.NoImages})
	}
	return nil
}

// authenticate lets in this agent alone, for the models it may ask.
func (w *Worker) authenticate(models *service.Proxy, o *Options, ids []string) (proxy.Authenticate, error) {
	terms, err := service.Terms(w.Plan, o.Who.Account, ids)
	if err != nil {
		return nil, err
	}
	terms.Run, terms.Budget, terms.Until = w.Run, o.Budget, time.Now().Add(agentLife)
	terms.BodyPolicy, terms.Headers, terms.Trace = proxy.StrictPolicy, o.Headers, o.Trace
	return proxy.AuthenticateAs(terms, service.Limits(&models.Config, &w.Plan.Agent.LLM))
}

// agentCalls are the connections of one agent to a proxy.
type agentCalls struct {
	models    *service.Proxy
	auth      proxy.Authenticate
	transport *http.Transport
}

func (c *agentCalls) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	c.models.Handle(far, c.auth)
	return near, nil
}

// callsPatience bounds the wait for what the last answer did cost.
const callsPatience = time.Minute

// settleShared waits until everything that the agent asked of a proxy which is not
// its own is settled.
func (w *Worker) settleShared(models *service.Proxy) error {
	ctx, cancel := context.WithTimeout(context.Background(), callsPatience)
	defer cancel()
	return models.WaitIdle(ctx, w.Run)
}
