package linux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Check returns what cannot be enforced of spec on this machine.
func (r *Runtime) Check(_ context.Context, spec *sandbox.Spec) []sandbox.Gap {
	gaps := specGaps(spec)
	if _, err := filterOf(spec); err != nil {
		gaps = append(gaps, sandbox.Gap{Field: "docker.seccompProfile", Reason: err.Error(), Wrong: errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission),
			Remedy: "correct the profile, or remove docker.seccompProfile to use Atoll's own"})
	}
	gaps = append(gaps, r.limitGaps(spec)...)
	return append(gaps, r.probed()...)
}

// minMemory is the least that a sandbox can be limited to: engines have the same.
const minMemory = 6 << 20

// specGaps returns settings that this runtime does not support on any machine.
// Where Docker does, that is the remedy.
func specGaps(spec *sandbox.Spec) []sandbox.Gap {
	const elsewhere = "remove it, or set sandbox.backend to docker"
	var gaps []sandbox.Gap
	add := func(asked bool, field, reason, remedy string) {
		if asked {
			gaps = append(gaps, sandbox.Gap{Field: field, Reason: reason, Remedy: remedy})
		}
	}
	add(spec.Network != "none", "docker.network", fmt.Sprintf("network %q: sandboxes without an engine have no network of their own", spec.Network),
		"set docker.network to none and name what may be reached in sandbox.egress, or set sandbox.backend to docker")
	add(!dropsAll(spec.CapDrop), "docker.capDrop", "no capability is ever left to a sandbox here, and the list does not drop all of them",
		"set docker.capDrop to [\"ALL\"], or sandbox.backend to docker")
	add(len(spec.DNS) > 0, "docker.dns", "there is no network to ask a name server over", elsewhere)
	add(spec.GPUs != "", "docker.gpus", "no devices of the host are passed on", elsewhere)
	add(spec.AppArmorProfile != "", "docker.apparmorProfile", "profiles of AppArmor are not set; Landlock is in its place", elsewhere)
	return slices.Concat(gaps, overlayGaps(spec), volumeGaps(spec), invalidLimits(spec), valueGaps(spec))
}

// invalidLimits returns limits that no engine would accept either.
func invalidLimits(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	if most := runtime.NumCPU(); spec.Limits.CPUs > float64(most) {
		gaps = append(gaps, sandbox.Gap{Field: "docker.cpus", Reason: fmt.Sprintf("%g CPUs are asked for, there are %d", spec.Limits.CPUs, most),
			Remedy: fmt.Sprintf("set docker.cpus to %d or less", most), Wrong: true})
	}
	if memory := spec.Limits.Memory; memory > 0 && memory < minMemory {
		gaps = append(gaps, sandbox.Gap{Field: "docker.memory", Reason: fmt.Sprintf("%d bytes of memory are too few to start anything", memory),
			Remedy: fmt.Sprintf("write docker.memory with a unit, such as \"512m\"; the least is %dm", minMemory>>20), Wrong: true})
	}
	return gaps
}

// dropsAll reports whether a list of capabilities to drop names all of them.
func dropsAll(list []string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		name = strings.ToUpper(strings.TrimSpace(name))
		return strings.TrimPrefix(name, "CAP_") == "ALL"
	})
}

// valueGaps returns values that this runtime cannot parse or enforce.
func valueGaps(spec *sandbox.Spec) []sandbox.Gap {
	var gaps []sandbox.Gap
	if _, err := userOf(spec.User); err != nil {
		gaps = append(gaps, sandbox.Gap{Field: "docker.user", Reason: err.Error(), Remedy: errhint.Of(err)})
	}
	if _, err := rlimits(spec.Limits.Ulimits); err != nil {
		gaps = append(gaps, sandbox.Gap{Field: "docker.ulimits", Reason: err.Error(), Remedy: "remove it from docker.ulimits"})
	}
	for _, t := range spec.Tmpfs {
		if _, err := tmpfsMount(t, ""); err != nil {
			gaps = append(gaps, sandbox.Gap{Field: "docker.tmpfs", Reason: err.Error(), Remedy: "remove the option"})
		}
	}
	for _, m := range spec.Mounts {
		if m.Relabel != "" && selinuxEnabled() {
			gaps = append(gaps, sandbox.Gap{Field: "docker.binds", Reason: "SELinux labels are not set", Remedy: "remove :" + m.Relabel + " from the bind"})
		}
	}
	return gaps
}

// limitFields maps limits to the settings that ask for them.
var limitFields = map[cgroups.Limit]string{
	cgroups.Pids: "docker.pidsLimit", cgroups.Memory: "docker.memory", cgroups.Swap: "docker.memorySwap", cgroups.CPU: "docker.cpus",
	cgroups.Weight: "docker.blkioWeight", cgroups.Rate: "docker.deviceReadBps, deviceWriteBps, deviceReadIOps or deviceWriteIOps",
}

// limitGaps returns the limits that no control group can be made for.
func (r *Runtime) limitGaps(spec *sandbox.Spec) []sandbox.Gap {
	gaps := storageGaps(spec)
	limits, err := r.groupLimits(spec)
	if err != nil {
		return append(gaps, sandbox.Gap{Field: limitFields[cgroups.Rate], Reason: "limits of disks: " + err.Error(),
			Remedy: "keep the workspace and the state directory on a disk of this machine, or remove the limits of disks"})
	}
	if limits.None() {
		return gaps
	}
	host, err := r.groups()
	if err != nil {
		return append(gaps, sandbox.Gap{Field: "docker.memory", Reason: "control groups: " + err.Error(), Remedy: "remove the limits"})
	}
	for _, m := range host.Missing(limits) {
		remedy := cmp.Or(errhint.Of(m.Err), "switch the controller on at boot (cgroup_enable=memory), or remove the limit")
		if m.Delegate {
			remedy = delegateRemedy()
		}
		gaps = append(gaps, sandbox.Gap{Field: limitFields[m.Limit], Reason: fmt.Sprintf("%s cannot be limited: %v", m.Limit, m.Err), Remedy: remedy})
	}
	return gaps
}

// IsHostImage reports whether an image setting means the host's own programs.
func IsHostImage(ref string) bool { return rootfs.IsHost(strings.TrimSpace(ref)) }
