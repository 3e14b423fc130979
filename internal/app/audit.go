package app

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/audit"
)

// AuditDir is where the audit log is.
func (s *Settings) AuditDir() string { return filepath.Join(s.Paths.AtollState, "audit") }

// AuditLog opens the audit log, once; scrub takes known secrets out of texts.
// It is closed with the App.
func (a *App) AuditLog(scrub func(string) string) (*audit.Log, error) {
	a.money.mu.Lock()
	defer a.money.mu.Unlock()
	if a.money.audit != nil {
		return a.money.audit, nil
	}
	var err error
	a.money.audit, err = audit.Open(a.AuditDir(), audit.Options{Scrub: scrub, Logger: a.logger})
	return a.money.audit, err
}
