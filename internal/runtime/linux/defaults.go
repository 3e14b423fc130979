package linux

import (
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Enforceable returns the defaults of a spec for which this user can make a
// control group.
func (r *Runtime) Enforceable(spec *sandbox.Spec) sandbox.Defaults {
	d := spec.Limits.Defaults
	if d.None() {
		return d
	}
	host, err := r.groups()
	if err != nil {
		return sandbox.Defaults{}
	}
	for _, missing := range host.Missing(cgroups.Limits{Pids: d.Pids, Memory: d.Memory}) {
		switch missing.Limit {
		case cgroups.Pids:
			d.Pids = 0
		case cgroups.Memory:
			d.Memory = 0
		}
	}
	return d
}
