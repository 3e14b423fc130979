package linux

import (
	"github.com/atoll-run/atoll/internal/cgroup"
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
	for _, missing := range host.Missing(cgroup.Limits{Pids: d.Pids, Memory: d.Memory}) {
		switch missing.Limit {
		case cgroup.Pids:
			d.Pids = 0
		case cgroup.Memory:
			d.Memory = 0
		}
	}
	return d
}
