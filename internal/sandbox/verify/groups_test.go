package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

func TestGroupLimits(t *testing.T) {
	cases := []struct {
		name, groups string
		files        map[string]string
		want         findings.Limits
	}{
		{"version 2", "0::/atoll/box/guest\n", map[string]string{
			"atoll/box/pids.max": "100", "atoll/box/guest/pids.max": "max", "atoll/pids.max": "5000",
			"atoll/box/memory.max": "1048576", "atoll/box/memory.swap.max": "4096", "atoll/box/cpu.max": "50000 100000",
		}, findings.Limits{Pids: 100, Memory: 1 << 20, Swap: 1<<20 + 4096, CPUs: 0.5, Sockets: 1 << 20}},
		{"version 1", "8:pids:/docker/x\n7:cpu,cpuacct:/docker/x\n6:memory:/docker/x\n1:name=systemd:/\n0::/\n", map[string]string{
			"pids/docker/x/pids.max": "132", "cpu/docker/x/cpu.cfs_quota_us": "70000", "cpu/docker/x/cpu.cfs_period_us": "50000",
			"memory/docker/x/memory.limit_in_bytes": "9223372036854771712", "memory/docker/x/memory.memsw.limit_in_bytes": "8192",
			"memory/docker/x/memory.kmem.tcp.limit_in_bytes": "4096",
		}, findings.Limits{Pids: 132, Memory: noLimit, Swap: 8192, CPUs: 1.4, Sockets: 4096}},
		{"hybrid", "4:pids:/box\n0::/box\n", map[string]string{"pids/box/pids.max": "9", "box/memory.max": "77", "box/memory.swap.max": "max"}, findings.Limits{Pids: 9, Memory: 77, Swap: noLimit, Sockets: 77}},
		{"none", "0::/box\n", map[string]string{"box/pids.max": "max", "box/cpu.max": "max 100000", "box/memory.max": "max"},
			findings.Limits{Pids: noLimit, Memory: noLimit, Swap: noLimit, CPUs: noLimit, Sockets: noLimit}},
		{"nonsense", "what\n::\n", nil, findings.Limits{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := writeTree(t, c.files)
			if diff := cmp.Diff(c.want, parseGroups(root, c.groups).limits()); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := outsideLimits(-1); got.Pids != 0 || got.Memory != 0 {
		t.Errorf("nobody's limits: %+v", got)
	}
}
