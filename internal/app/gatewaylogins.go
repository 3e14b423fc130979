package app

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// loginKind is the kind of records of connections that authenticated.
const loginKind = "login"

// auditLogIn records a WebSocket connection of an authenticated caller, by the id
// of its token.
func (g *Gateway) auditLogIn(_ context.Context, l access.LogIn) {
	r := &audit.Record{Time: time.Now(), Kind: loginKind, RequestID: l.Caller.Token, Subject: audit.Subject{Account: l.Caller.Account}, Status: http.StatusSwitchingProtocols}
	if l.Denied != nil {
		r.Status, r.Denied = http.StatusForbidden, l.Denied.Error()
	}
	log, err := g.app.AuditLog(g.worker.Models().Scrub)
	if err == nil {
		err = log.Append(r)
	}
	g.complain("audit of a connection", err)
}
