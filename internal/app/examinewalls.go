package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/verify"
)

// examineWalls reports ring by ring what the kernel gives every sandbox: the
// same rings that `atoll sandbox verify` tries in a live one.
func (a *App) examineWalls(context.Context) []Check {
	var checks []Check
	for _, c := range verify.Kernel() {
		status := map[verify.Status]CheckStatus{verify.OK: CheckOK, verify.Note: CheckWarning, verify.Gap: CheckFailed}[c.Status]
		checks = append(checks, Check{Name: "ring " + c.Ring, Status: status, Detail: c.Found})
	}
	return checks
}
