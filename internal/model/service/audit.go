package service

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// AuditDir is where the audit log is.
func AuditDir(s *provide.Settings) string { return filepath.Join(s.Paths.AtollState, "audit") }

// AuditLog opens the audit log, once. It is closed by Close.
func (a *Service) AuditLog() (*MeteredLog, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.audit != nil {
		return a.audit, nil
	}
	log, err := audit.Open(AuditDir(a.Settings), audit.Options{Logger: a.Logger})
	if err != nil {
		return nil, err
	}
	a.audit = newMeteredLog(log, a)
	return a.audit, nil
}
