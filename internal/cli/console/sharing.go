package console

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// SaySharing says, the first time that a session of an agent is named, that its
// sandbox and files are those of the agent's other sessions too.
func (e *Env) SaySharing(ctx context.Context, a *app.App, who provide.Subject) {
	if who.SessionKey == "" {
		return
	}
	p, err := a.Plan(who)
	if err != nil || p.Session.Key == p.Session.MainKey {
		return
	}
	sharers := ""
	switch p.Agent.Sandbox.Scope {
	case config.ScopeAgent:
		sharers = "all sessions of agent " + p.Agent.ID
	case config.ScopeShared:
		sharers = "all sessions of all agents"
	default:
		return
	}
	if a.FirstTime(ctx, "sharing:"+p.Agent.ID) {
		e.Notice(fmt.Sprintf("%s share one sandbox and its files (sandbox.scope is %s); --scope session gives each its own", sharers, p.Agent.Sandbox.Scope))
	}
}
