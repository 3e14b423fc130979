package vm

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/vm/profile"
)

// Drift is a difference between a virtual machine and its profile.
type Drift struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	Fatal  bool   `json:"fatal"` // it is not started like this
}

// again is the remedy for what is fixed when a virtual machine is made.
const again = "decide about what waits (`atoll sync status`), then `atoll vm delete` and `atoll vm up`"

// Differences returns how a profile differs from what the virtual machine was made with.
func (was *Made) Differences(m *Manager, mounts []profile.Mount) (list []Drift) {
	now := &m.Profile
	edit := func(flag, value string) string {
		return fmt.Sprintf("`atoll vm down`, `limactl edit --%s=%s %s`, `atoll vm up`", flag, value, m.InstanceName())
	}
	if was.Profile.CPUs != now.CPUs {
		list = append(list, Drift{fmt.Sprintf("it has %d CPUs, the profile %d", was.Profile.CPUs, now.CPUs), edit("cpus", fmt.Sprint(now.CPUs)), false})
	}
	if was.Profile.Memory != now.Memory {
		list = append(list, Drift{fmt.Sprintf("it has %s of memory, the profile %s", profile.Size(was.Profile.Memory), profile.Size(now.Memory)), edit("memory", fmt.Sprint(now.Memory>>30)), false})
	}
	if was.Profile.Disk != now.Disk {
		list = append(list, Drift{fmt.Sprintf("its disk has %s, the profile's %s", profile.Size(was.Profile.Disk), profile.Size(now.Disk)), again, false})
	}
	if was.Profile.Rosetta != now.Rosetta {
		list = append(list, Drift{fmt.Sprintf("rosetta is %v, in the profile %v", was.Profile.Rosetta, now.Rosetta), again, false})
	}
	if was.Profile.Port != now.Port {
		list = append(list, Drift{fmt.Sprintf("it forwards port %d, the profile %d", was.Profile.Port, now.Port), again, true})
	}
	return append(list, mountDifferences(was.Mounts, mounts)...)
}

// mountDifferences compares directories; each of them is fixed when it is made.
func mountDifferences(was, now []profile.Mount) (list []Drift) {
	for _, m := range now {
		i := slices.IndexFunc(was, func(o profile.Mount) bool { return o.Point == m.Point })
		switch {
		case i < 0:
			list = append(list, Drift{m.Point + " is in the profile and not in it", again, true})
		case was[i].Source != m.Source:
			list = append(list, Drift{fmt.Sprintf("%s is %s in it and %s in the profile", m.Point, was[i].Source, m.Source), again, true})
		case was[i].Writable != m.Writable:
			list = append(list, Drift{fmt.Sprintf("%s is %s in it and %s in the profile", m.Point, access(was[i].Writable), access(m.Writable)), again, true})
		}
	}
	for _, o := range was {
		if !slices.ContainsFunc(now, func(m profile.Mount) bool { return m.Point == o.Point }) {
			list = append(list, Drift{o.Point + " is in it and not in the profile", again, true})
		}
	}
	return list
}

func access(writable bool) string {
	if writable {
		return "writable"
	}
	return "read-only"
}
