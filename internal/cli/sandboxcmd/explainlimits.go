package sandboxcmd

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// explainedDefaults are the limits that are not configured and that hold.
type explainedDefaults struct {
	Memory int64 `json:"memory"` // bytes
	Pids   int64 `json:"pids"`
	// Missing says which do not hold, and why.
	Missing string `json:"missing"`
}

func explainDefaults(settings *provide.Settings, p *plan.Plan, backend provide.Backend) explainedDefaults {
	held, why := settings.DefaultLimits(p, backend)
	x := explainedDefaults{Memory: held.Memory, Pids: held.Pids}
	var missing []string
	if asked := p.Spec.Limits.Defaults; why != "" {
		if asked.Memory > 0 && held.Memory == 0 {
			missing = append(missing, "memory")
		}
		if asked.Pids > 0 && held.Pids == 0 {
			missing = append(missing, "processes")
		}
		x.Missing = strings.Join(missing, " and ") + ": " + why
	}
	return x
}

// limits names the limits that are set.
func (pg *page) limits(d config.Docker) {
	limits := []struct{ name, value, setting string }{
		{"memory", d.Memory.Text, "memory"},
		{"memory and swap", d.MemorySwap.Text, "memorySwap"},
		{"processors", positive(d.CPUs), "cpus"},
		{"processes", positive(float64(d.PidsLimit)), "pidsLimit"},
		{"share of disks", positive(float64(d.BlkioWeight)), "blkioWeight"},
		{"read a second", d.DeviceReadBps.Text, "deviceReadBps"},
		{"written a second", d.DeviceWriteBps.Text, "deviceWriteBps"},
		{"reads a second", positive(float64(d.DeviceReadIOps)), "deviceReadIOps"},
		{"writes a second", positive(float64(d.DeviceWriteIOps)), "deviceWriteIOps"},
		{"changes of the root", d.StorageOpt["size"].Text, "storageOpt.size"},
		{"files in the root", d.StorageOpt["inodes"].Text, "storageOpt.inodes"},
	}
	for _, limit := range limits {
		if limit.value != "" {
			pg.fact(limit.name, limit.value, "sandbox.docker."+limit.setting)
		}
	}
	pg.defaultLimits(pg.x.Sandbox.DefaultLimits)
}

// defaultLimits names the limits that are not configured, and those that do not
// hold here.
func (pg *page) defaultLimits(d explainedDefaults) {
	if d.Memory > 0 {
		pg.fact("memory", fmt.Sprintf("%d MiB", d.Memory>>20), machineDefault)
	}
	if d.Pids > 0 {
		pg.fact("processes", fmt.Sprint(d.Pids), machineDefault)
	}
	if d.Missing != "" {
		pg.painted("not limited", d.Missing, "", pg.style.Warn)
	}
}

func positive(n float64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%g", n)
}
