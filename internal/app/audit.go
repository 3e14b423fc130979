package app

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/audit"
)

// AuditDir is where the audit log is.
func (s *Settings) AuditDir() string { return filepath.Join(s.Paths.AtollState, "audit") }

// AuditLog opens the audit log, once; scrub takes known secrets out of texts.
// It is closed with the App.
func (a *App) AuditLog(scrub func(string) string) (*MeteredLog, error) {
	a.money.mu.Lock()
	defer a.money.mu.Unlock()
	if a.money.audit != nil {
		return a.money.audit, nil
	}
	log, err := audit.Open(a.AuditDir(), audit.Options{Scrub: scrub, Logger: a.logger})
	if err != nil {
		return nil, err
	}
	a.money.audit = newMeteredLog(log, &a.money.metrics)
	return a.money.audit, nil
}
