package verify

import (
	"testing"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// TestPods: what Kubernetes has no setting for is noted, of pods only and nothing more.
func TestPods(t *testing.T) {
	for name, c := range map[string]struct {
		backend string
		spoil   func(*Evidence)
		holds   bool
	}{
		"clocks of the node":        {pods, func(e *Evidence) { e.Inside.Namespaces["time"] = e.Host["time"] }, true},
		"network of the node":       {pods, func(e *Evidence) { e.Inside.Namespaces["net"] = e.Host["net"] }, false},
		"pressure":                  {pods, func(e *Evidence) { e.Inside.Paths[0] = findings.Attempt{Name: "write /proc/pressure/memory"} }, true},
		"pressure, in a container":  {"docker", func(e *Evidence) { e.Inside.Paths[0] = findings.Attempt{Name: "write /proc/pressure/memory"} }, false},
		"keys":                      {pods, func(e *Evidence) { e.Inside.Paths[0] = findings.Attempt{Name: "read /proc/kcore"} }, false},
		"memory":                    {pods, func(e *Evidence) { e.Inside.Mounts[1].Options = "rw,size=1024k" }, true},
		"memory and new privileges": {pods, func(e *Evidence) { e.Inside.Mounts[1].Options, e.Inside.Self.NoNewPrivs = "rw,size=1024k", false }, false},
		"file of the kubelet": {pods, func(e *Evidence) {
			e.Inside.Mounts = append(e.Inside.Mounts, findings.Mount{Target: "/dev/termination-log", Type: "ext4"})
		}, true},
		"another file of the node's": {pods, func(e *Evidence) {
			e.Inside.Mounts = append(e.Inside.Mounts, findings.Mount{Target: "/dev/node", Type: "ext4"})
		}, false},
	} {
		e := sound()
		e.Spec.Backend = c.backend
		c.spoil(e)
		if checks := Checks(e); Holds(checks) != c.holds {
			t.Errorf("%s: %+v", name, gapsOf(checks))
		}
	}
}

func gapsOf(checks []Check) (gaps []Check) {
	for _, c := range checks {
		if c.Status == Gap {
			gaps = append(gaps, c)
		}
	}
	return gaps
}
