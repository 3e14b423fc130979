package service

import (
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// AuditExec records a command that is about to be started under a grant. On an
// error it must not be started.
func (a *Service) AuditExec(terms *grant.Terms, sandbox string, argv []string) error {
	log, err := a.AuditLog()
	if err != nil {
		return err
	}
	return log.Append(&audit.ExecEvent{
		Time: time.Now(), Sandbox: sandbox, Program: argv[0], Arguments: len(argv) - 1,
		Subject: audit.Subject{Account: terms.Account, Agent: terms.Agent, Session: terms.Session, Run: terms.Run, Attempt: terms.Attempt, Graph: terms.Graph, Trace: terms.Trace},
	})
}

// AuditCommand records a command that is about to be started in a sandbox without
// a grant. On an error it must not be started. The record costs one write: it is
// put into the log by the next process that writes to that.
func (a *Service) AuditCommand(s *provide.ReadySandbox, account string, argv []string) error {
	return audit.AppendPending(AuditDir(a.Settings), &audit.ExecEvent{
		Time: time.Now(), Sandbox: s.Name, Program: argv[0], Arguments: len(argv) - 1,
		Subject: audit.Subject{Account: account, Agent: s.Plan.Agent.ID, Session: s.Plan.Session.Key},
	})
}
