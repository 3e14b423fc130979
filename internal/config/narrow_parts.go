package config

import (
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// narrow lowers what an agent may ask of models.
func (l *AgentLLM) narrow(f *agentLLMFile) {
	if f.BodyPolicy != nil {
		l.BodyPolicy = *f.BodyPolicy
	}
	budgets := orEmpty(f.Budgets)
	lowerBudget(&l.Run, budgets.Run)
	lowerBudget(&l.Session, budgets.Session)
	lowerBudget(&l.Agent, budgets.Agent)
}

func lowerBudget(budget, other *LLMBudget) {
	if other != nil {
		lower(&budget.USD, &other.USD)
		lower(&budget.Tokens, &other.Tokens)
	}
}

// llm lowers the budgets, times and limits of everyone who asks models.
func (n *projectLimits) llm(l *LLM) {
	if n == nil {
		return
	}
	f := orEmpty(n.file.LLM)
	if f.Unpriced != nil {
		l.Unpriced = *f.Unpriced
	}
	budgets, times, limits := orEmpty(f.Budgets), orEmpty(f.Timeouts), orEmpty(f.Limits)
	lowerBudget(&l.Account, budgets.Account)
	lowerBudget(&l.Day, budgets.Day)
	lower(&l.Timeouts.ConnectMs, times.ConnectMs)
	lower(&l.Timeouts.HeaderMs, times.HeaderMs)
	lower(&l.Timeouts.IdleMs, times.IdleMs)
	lower(&l.Timeouts.TotalMs, times.TotalMs)
	lowerBytes(&l.Limits.BodyBytes, limits.BodyBytes)
	lower(&l.Limits.MaxOutputTokens, limits.MaxOutputTokens)
	lower(&l.Limits.Choices, limits.Choices)
	lower(&l.Limits.Connections, limits.Connections)
	lower(&l.Limits.Requests, limits.Requests)
}

func lowerBytes(limit *int64, other *Size) {
	if other == nil {
		return
	}
	if bytes, err := other.Bytes(); err == nil {
		lower(limit, &bytes)
	}
}

// relay lowers what a run may bring, and blocks more paths.
func (n *projectLimits) relay(r *Relay) {
	if n == nil {
		return
	}
	f := orEmpty(n.file.Relay)
	limits := orEmpty(f.Limits)
	lower(&r.Limits.Commits, limits.Commits)
	lower(&r.Limits.Files, limits.Files)
	lowerBytes(&r.Limits.FileBytes, limits.FileBytes)
	lowerBytes(&r.Limits.TotalBytes, limits.TotalBytes)
	lowerBytes(&r.Limits.PackBytes, limits.PackBytes)
	if len(f.Protect) > 0 {
		r.Protect = maps.Clone(r.Protect)
		if r.Protect == nil {
			r.Protect = map[string]string{}
		}
		maps.Copy(r.Protect, f.Protect)
	}
}

// gateway lowers what the gateway takes on.
func (n *projectLimits) gateway(g *Gateway) {
	if n == nil {
		return
	}
	limits := orEmpty(orEmpty(n.file.Gateway).Limits)
	lower(&g.Limits.Connections, limits.Connections)
	lower(&g.Limits.PerAddress, limits.PerAddress)
	lower(&g.Limits.Inbound, limits.Inbound)
	lower(&g.Limits.InboundPerToken, limits.InboundPerToken)
	lower(&g.Limits.Requests, limits.Requests)
	lower(&g.Limits.Runs, limits.Runs)
	lower(&g.Limits.Sandboxes, limits.Sandboxes)
	lower(&g.Limits.USD, limits.USD)
}

// runs lowers how many runs work at once.
func (n *projectLimits) runs(r *Runs) {
	if n != nil {
		lower(&r.Concurrency, orEmpty(n.file.Runs).Concurrency)
	}
}

// web switches tools of the web off.
func (n *projectLimits) web(w *Web) {
	if n == nil {
		return
	}
	f := orEmpty(orEmpty(n.file.Tools).Web)
	if isFalse(f.Search.Enabled) {
		w.Search.Enabled = f.Search.Enabled
	}
	if isFalse(f.Fetch.Enabled) {
		w.Fetch.Enabled = f.Fetch.Enabled
	}
}

// noteNarrowed gives every value that a project's file changed that file as its
// origin.
func noteNarrowed(origins map[string]Origin, before, after *Sandbox) {
	was, now := flat(before), flat(after)
	for key, value := range now {
		if string(was[key]) != string(value) {
			origins[key] = Origin{Source: FromProject}
		}
	}
}

// flat returns the values of a sandbox's settings as JSON, by their keys below
// the agent.
func flat(s *Sandbox) map[string][]byte {
	text, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return nil
	}
	values := map[string][]byte{}
	flatten(values, "sandbox", text)
	return values
}

func flatten(values map[string][]byte, at string, text []byte) {
	var members map[string]jsontext.Value
	if json.Unmarshal(text, &members) != nil {
		values[at] = text
		return
	}
	for name, value := range members {
		flatten(values, at+"."+name, value)
	}
}
