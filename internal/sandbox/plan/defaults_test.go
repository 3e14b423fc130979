package plan_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// Limits that nobody configured are in the spec and not in the hash: on a machine
// with other memory the sandbox is the same.
func TestDefaultLimits(t *testing.T) {
	d := newDesk(t)
	r := d.request(`{}`)
	var hashes []string
	for _, memory := range []int64{0, 1 << 30} {
		r.Memory = memory
		p, err := plan.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Spec.Limits
		if got.Pids != 0 || got.Memory != 0 || got.Defaults.Pids != plan.DefaultPids || got.Defaults.Memory < 64<<20 || memory > 0 && got.Defaults.Memory != memory {
			t.Errorf("limits %+v", got)
		}
		hashes = append(hashes, p.Spec.ConfigHash)
	}
	if hashes[0] != hashes[1] {
		t.Error("the machine's memory is part of the hash")
	}
	own := d.plan(`{ agents: { defaults: { sandbox: { docker: { memory: "64m", pidsLimit: 9 } } } } }`).Spec.Limits
	if own.Memory != 64<<20 || own.Pids != 9 || own.Defaults != (sandbox.Defaults{}) {
		t.Errorf("configured limits: %+v", own)
	}
}
