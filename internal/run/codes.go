package run

import "slices"

// codes are the codes of failures that Atoll itself gives. Agents can give others.
var codes = []string{
	"agent_error", "agent_failed", "branch_lock_failed", "cancelled", "disk_full", "external_refused", "external_unreachable", "failed", "gateway_failed",
	"gateway_refused", "gateway_restarted", "gateway_unreachable", "grant_failed", "interrupted", "invalid_output", "killed", "model_not_allowed", NoSlot,
	"no_output", "not_supported", "oom_killed", "quota_exceeded", "relay_failed", "sandbox_failed", "sandbox_lost", "store_failed", "timeout",
	"unknown_model", "workspace_failed",
}

// MetricCode returns the code of a failure if it is one of Atoll's own, "other" if the
// agent chose it, and "" for no failure.
func MetricCode(f *Failure) string {
	switch {
	case f == nil:
		return ""
	case slices.Contains(codes, f.Code):
		return f.Code
	}
	return "other"
}
