package docker

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Check returns what this engine cannot enforce of spec. An engine that does not
// answer can enforce nothing.
func (r *Runtime) Check(ctx context.Context, spec *sandbox.Spec) []sandbox.Gap {
	known, err := r.askFacts(ctx)
	if err != nil {
		return []sandbox.Gap{{Field: "backend", Reason: err.Error(), Remedy: errhint.Of(err)}}
	}
	gaps := r.engineGaps(known)
	gaps = append(gaps, isolationGaps(known, spec)...)
	gaps = append(gaps, limitGaps(known, spec.Limits)...)
	gaps = append(gaps, diskGaps(known, spec)...)
	gaps = append(gaps, storageGaps(known, spec)...)
	gaps = append(gaps, overlayGaps(known, spec)...)
	gaps = append(gaps, r.gpuGaps(known, spec)...)
	gaps = append(gaps, r.userGaps(known, spec)...)
	return append(gaps, r.networkGaps(ctx, spec)...)
}

// engineGaps are about the engine as such.
func (r *Runtime) engineGaps(known *facts) []sandbox.Gap {
	var gaps []sandbox.Gap
	if known.where != Nearby {
		gaps = append(gaps, sandbox.Gap{Field: "backend",
			Reason: fmt.Sprintf("the engine at %s runs on another machine (%s, kernel %s), and sandboxes are reached through a shared directory", r.options.Host, known.Name, known.KernelVersion),
			Remedy: "use an engine of this machine"})
	}
	if known.OSType != "" && known.OSType != "linux" {
		gaps = append(gaps, sandbox.Gap{Field: "backend",
			Reason: "the engine makes " + known.OSType + " containers", Remedy: "switch it to Linux containers"})
	}
	if known.secured("selinux") {
		gaps = append(gaps, sandbox.Gap{Field: "backend",
			Reason: "the engine separates containers with SELinux, whose labels Atoll does not set on mounts yet",
			Remedy: "use the linux backend, or an engine without SELinux separation"})
	}
	return gaps
}

func isolationGaps(known *facts, spec *sandbox.Spec) []sandbox.Gap {
	var gaps []sandbox.Gap
	if !known.secured("seccomp") {
		gaps = append(gaps, sandbox.Gap{Field: "docker.seccompProfile",
			Reason: "the engine cannot filter system calls", Remedy: "use a kernel and an engine with seccomp"})
	}
	if spec.AppArmorProfile != "" && !known.secured("apparmor") {
		gaps = append(gaps, sandbox.Gap{Field: "docker.apparmorProfile",
			Reason: "the engine has no AppArmor", Remedy: "remove docker.apparmorProfile, or use a host with AppArmor"})
	}
	return gaps
}

// limitGaps are the limits that the engine's kernel or cgroups do not have.
func limitGaps(known *facts, limits sandbox.Limits) []sandbox.Gap {
	const remedy = "enable the cgroup controller for the engine, or remove the limit"
	checks := []struct {
		asked    bool
		field    string
		enforced bool
		what     string
	}{
		{limits.Memory > 0, "docker.memory", known.MemoryLimit, "memory"},
		{limits.MemorySwap > 0, "docker.memorySwap", known.SwapLimit, "swap"},
		{limits.CPUs > 0, "docker.cpus", known.CPUCfsPeriod && known.CPUCfsQuota, "CPU time"},
		{limits.Pids > 0, "docker.pidsLimit", known.PidsLimit, "the number of processes"},
	}
	var gaps []sandbox.Gap
	for _, check := range checks {
		if check.asked && !check.enforced {
			gaps = append(gaps, sandbox.Gap{Field: check.field, Reason: "the engine cannot limit " + check.what, Remedy: remedy})
		}
	}
	if known.NCPU > 0 && limits.CPUs > float64(known.NCPU) {
		gaps = append(gaps, sandbox.Gap{Field: "docker.cpus",
			Reason: fmt.Sprintf("%g CPUs are asked for, the engine has %d", limits.CPUs, known.NCPU), Remedy: "lower docker.cpus"})
	}
	return gaps
}

func (r *Runtime) gpuGaps(known *facts, spec *sandbox.Spec) []sandbox.Gap {
	if spec.GPUs == "" {
		return nil
	}
	if _, err := parseGPUs(spec.GPUs); err != nil {
		return []sandbox.Gap{{Field: "docker.gpus", Reason: err.Error(), Remedy: `write "all", a number, or "device=…"`}}
	}
	if r.options.Flavor == Podman && known.majorVersion() < podmanGPURelease {
		return []sandbox.Gap{{Field: "docker.gpus",
			Reason: fmt.Sprintf("Podman %s ignores GPU requests", known.ServerVersion), Remedy: fmt.Sprintf("upgrade to Podman %d", podmanGPURelease)}}
	}
	if _, nvidia := known.Runtimes["nvidia"]; !nvidia && len(known.DiscoveredDevices) == 0 {
		return []sandbox.Gap{{Field: "docker.gpus",
			Reason: "the engine knows no GPU runtime", Remedy: "install the NVIDIA container toolkit and configure the engine for it"}}
	}
	return nil
}

// userGaps are about users that cannot be what they are called, or whose guest
// we could not talk to. The image's user is only known when it is looked at.
func (r *Runtime) userGaps(known *facts, spec *sandbox.Spec) []sandbox.Gap {
	if spec.User == "" {
		return nil
	}
	if err := reachable(r.options.Flavor, known, spec.User); err != nil {
		return []sandbox.Gap{{Field: "docker.user", Reason: err.Error(), Remedy: errhint.Of(err)}}
	}
	user, numeric := parseAccount(spec.User)
	if r.options.Flavor != Podman || !known.secured("rootless") || !numeric || user.uid != 0 && user.gid != 0 {
		return nil
	}
	return []sandbox.Gap{{Field: "docker.user",
		Reason: "rootless Podman cannot keep uid or gid 0", Remedy: fmt.Sprintf("set docker.user to %d:%d", os.Getuid(), os.Getgid())}}
}

// networkGaps asks the engine for a network or container that spec names.
func (r *Runtime) networkGaps(ctx context.Context, spec *sandbox.Spec) []sandbox.Gap {
	if peer, joins := strings.CutPrefix(spec.Network, containerNetwork); joins {
		return r.joinGaps(ctx, spec, peer)
	}
	if spec.Network == "none" || spec.Network == "bridge" {
		return nil
	}
	_, err := ask(ctx, r.engine, func(c *client.Client) (client.NetworkInspectResult, error) {
		return c.NetworkInspect(ctx, spec.Network, client.NetworkInspectOptions{})
	})
	if err == nil {
		return nil
	}
	gap := sandbox.Gap{Field: "docker.network", Reason: fmt.Sprintf("network %q: %v", spec.Network, err), Remedy: errhint.Of(err)}
	if isNotFound(err) {
		gap.Reason = fmt.Sprintf("the engine has no network %q", spec.Network)
		gap.Remedy = fmt.Sprintf("create it: %s network create %s", r.options.Flavor, spec.Network)
	}
	return []sandbox.Gap{gap}
}

func (r *Runtime) joinGaps(ctx context.Context, spec *sandbox.Spec, peer string) []sandbox.Gap {
	var gaps []sandbox.Gap
	if _, err := r.inspect(ctx, peer); err != nil {
		gaps = append(gaps, sandbox.Gap{Field: "docker.network",
			Reason: fmt.Sprintf("container %q: %v", peer, err), Remedy: "start that container first"})
	}
	if len(spec.DNS) > 0 || len(spec.ExtraHosts) > 0 {
		gaps = append(gaps, sandbox.Gap{Field: "docker.dns",
			Reason: "a sandbox that joins a container's network has that container's names", Remedy: "remove docker.dns and docker.extraHosts"})
	}
	return gaps
}
