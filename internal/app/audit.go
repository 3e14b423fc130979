package app

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// AuditDir is where the audit log is.
func AuditDir(s *provide.Settings) string { return filepath.Join(s.Paths.AtollState, "audit") }

// AuditLog opens the audit log, once; scrub takes known secrets out of texts.
// It is closed with the App.
func (a *App) AuditLog(scrub func(string) string) (*MeteredLog, error) {
	a.money.mu.Lock()
	defer a.money.mu.Unlock()
	if a.money.audit != nil {
		return a.money.audit, nil
	}
	log, err := audit.Open(AuditDir(a.Settings), audit.Options{Scrub: scrub, Logger: a.Logger})
	if err != nil {
		return nil, err
	}
	a.money.audit = newMeteredLog(log, &a.money.metrics)
	return a.money.audit, nil
}
