package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
)

// checkKernel reports ring by ring what the kernel gives every sandbox: the
// same rings that `atoll sandbox verify` tries in a live one.
func (d *Doctor) checkKernel(context.Context) []Check {
	if d.elsewhere() {
		return nil
	}
	var checks []Check
	for _, c := range verify.Kernel() {
		status := map[verify.Status]CheckStatus{verify.OK: CheckOK, verify.Note: CheckWarning, verify.Gap: CheckFailed}[c.Status]
		checks = append(checks, Check{Name: "ring " + c.Ring, Status: status, Detail: c.Found, Fix: c.Remedy})
	}
	return checks
}

// checkLimits says whether this user could have limits without an engine: not
// everybody who may make a sandbox may make control groups.
func (d *Doctor) checkLimits(ctx context.Context) []Check {
	rt, err := d.Linux()
	if err != nil || d.elsewhere() {
		return nil // checkEngine says why
	}
	anyhow := rt.Check(ctx, &sandbox.Spec{Network: "none"})
	var refused []string
	remedy := ""
	for _, gap := range rt.Check(ctx, &sandbox.Spec{Network: "none", Limits: sandbox.Limits{Pids: 64, Memory: 64 << 20, CPUs: 0.5}}) {
		if !slices.Contains(anyhow, gap) {
			refused, remedy = append(refused, strings.TrimPrefix(gap.Field, "docker.")), gap.Remedy
		}
	}
	if len(refused) > 0 {
		return []Check{warned("limits", "without an engine these are refused to you if configured, and left out of the defaults: "+strings.Join(refused, ", "), remedy)}
	}
	return []Check{passed("limits", "pidsLimit, memory and cpus can be enforced without an engine")}
}
