package serve

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// auditLogIn records a WebSocket connection of an authenticated caller, by the id
// of its token, or a token that was refused.
func (g *Gateway) auditLogIn(ctx context.Context, l access.LogIn) {
	e := &audit.LoginEvent{Time: time.Now()}
	if l.Caller != nil {
		e.Token, e.Subject.Account = l.Caller.Token, l.Caller.Account
	}
	if l.From.IsValid() {
		e.From = l.From.String()
	}
	if l.Denied != nil {
		e.Denied = l.Denied.Error()
	}
	g.logLogIn(ctx, e, l.Path)
	log, err := g.parts.Models.AuditLog()
	if err == nil {
		err = log.Append(e)
	}
	g.logError("audit of a connection", err)
}

// logLogIn logs a connection, or a token that was refused; the throttle bounds how
// many of those an address can cause.
func (g *Gateway) logLogIn(ctx context.Context, e *audit.LoginEvent, path string) {
	if e.Denied != "" {
		g.logger.WarnContext(ctx, "log-in refused", "token", e.Token, "account", e.Subject.Account, "path", path, "from", e.From, "error", e.Denied)
		return
	}
	g.logger.InfoContext(ctx, "log-in", "token", e.Token, "account", e.Subject.Account, "path", path, "from", e.From)
}
