package docker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// verify compares the container that the engine made with what was asked: an
// engine that drops a setting it does not know must not go unnoticed.
func verify(asked *container.HostConfig, found *container.InspectResponse) error {
	got := found.HostConfig
	if got == nil {
		return errors.New("the engine tells nothing of what it made")
	}
	checks := []struct {
		setting string
		holds   bool
	}{
		{"read-only root", got.ReadonlyRootfs == asked.ReadonlyRootfs},
		{"no privileges", !got.Privileged && len(got.CapAdd) == 0},
		{"no-new-privileges", hasSecurityOption(got, "no-new-privileges")},
		{"seccomp profile", hasSecurityOption(got, "seccomp=")},
		{"network", hasNetwork(found, asked.NetworkMode)},
		{"memory limit", got.Memory == asked.Memory},
		{"memory and swap limit", asked.MemorySwap == 0 || got.MemorySwap == asked.MemorySwap},
		{"cpu limit", got.NanoCPUs == asked.NanoCPUs},
		{"pids limit", asked.PidsLimit == nil || got.PidsLimit != nil && *got.PidsLimit == *asked.PidsLimit},
		{"share of disks", got.BlkioWeight == asked.BlkioWeight},
		{"limits of disks", sameRates(got, asked)},
		{"size of the root", maps.Equal(got.StorageOpt, asked.StorageOpt)},
		{"process namespace of its own", got.PidMode.IsPrivate()},
	}
	var problems []error
	for _, check := range checks {
		if !check.holds {
			problems = append(problems, fmt.Errorf("the engine did not apply: %s: %w", check.setting, sandbox.ErrUnsupported))
		}
	}
	for _, m := range asked.Mounts {
		problems = append(problems, verifyMount(m, found.Mounts))
	}
	return errors.Join(problems...)
}

func hasSecurityOption(got *container.HostConfig, prefix string) bool {
	return slices.ContainsFunc(got.SecurityOpt, func(option string) bool { return strings.HasPrefix(option, prefix) })
}

// hasNetwork allows for an engine that names a joined container by its id, and
// for one that calls every named network a bridge and names it elsewhere.
func hasNetwork(found *container.InspectResponse, asked container.NetworkMode) bool {
	got := found.HostConfig.NetworkMode
	if got == asked || got.IsContainer() && asked.IsContainer() {
		return true
	}
	if !got.IsBridge() || found.NetworkSettings == nil {
		return false
	}
	_, named := found.NetworkSettings.Networks[string(asked)]
	return named
}

func verifyMount(asked mount.Mount, found []container.MountPoint) error {
	for _, m := range found {
		if m.Destination != asked.Target || m.Type != asked.Type {
			continue
		}
		source := m.Source
		if asked.Type == mount.TypeVolume {
			source = m.Name
		}
		if source == asked.Source && m.RW == !asked.ReadOnly {
			return nil
		}
	}
	return fmt.Errorf("the engine did not apply: mount of %s at %s: %w", asked.Source, asked.Target, sandbox.ErrUnsupported)
}
