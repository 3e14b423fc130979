package service

import (
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// AuditExec records a command that is about to be started under a grant. On an
// error it must not be started.
func (a *Service) AuditExec(terms *grant.Terms, sandbox string, argv []string) error {
	log, err := a.AuditLog(nil) // it is open: there is a grant
	if err != nil {
		return err
	}
	return log.Append(&audit.ExecEvent{
		Time: time.Now(), Sandbox: sandbox, Program: argv[0], Arguments: len(argv) - 1,
		Subject: audit.Subject{Account: terms.Account, Agent: terms.Agent, Session: terms.Session, Run: terms.Run, Attempt: terms.Attempt, Graph: terms.Graph, Trace: terms.Trace},
	})
}
