package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"

	"github.com/atoll-run/atoll/internal/sandbox"
)

func TestVerifyNoticesWhatAnEngineDropped(t *testing.T) {
	asked := func() *container.HostConfig {
		pids := int64(5)
		return &container.HostConfig{
			ReadonlyRootfs: true, NetworkMode: "none", SecurityOpt: []string{"no-new-privileges", "seccomp={}"},
			Resources:  container.Resources{Memory: 1, MemorySwap: 2, NanoCPUs: 3, PidsLimit: &pids, BlkioWeight: 20, BlkioDeviceWriteBps: []*blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 7}}},
			StorageOpt: map[string]string{"size": "9"},
			Mounts:     []mount.Mount{{Type: mount.TypeBind, Source: "/src", Target: "/dst", ReadOnly: true}, {Type: mount.TypeVolume, Source: "vol", Target: "/v"}},
		}
	}
	made := func() *container.InspectResponse {
		return &container.InspectResponse{HostConfig: asked(), Mounts: []container.MountPoint{
			{Type: mount.TypeBind, Source: "/src", Destination: "/dst"},
			{Type: mount.TypeVolume, Name: "vol", Source: "/var/lib/vol", Destination: "/v", RW: true},
		}}
	}
	cases := []struct {
		name  string
		spoil func(*container.InspectResponse)
		want  string
	}{
		{"nothing", func(*container.InspectResponse) {}, ""},
		{"root", func(i *container.InspectResponse) { i.HostConfig.ReadonlyRootfs = false }, "read-only root"},
		{"privileged", func(i *container.InspectResponse) { i.HostConfig.Privileged = true }, "no privileges"},
		{"added capability", func(i *container.InspectResponse) { i.HostConfig.CapAdd = []string{"SYS_ADMIN"} }, "no privileges"},
		{"no-new-privileges", func(i *container.InspectResponse) { i.HostConfig.SecurityOpt = []string{"seccomp={}"} }, "no-new-privileges"},
		{"seccomp", func(i *container.InspectResponse) { i.HostConfig.SecurityOpt = []string{"no-new-privileges"} }, "seccomp profile"},
		{"network", func(i *container.InspectResponse) { i.HostConfig.NetworkMode = "host" }, "network"},
		{"another bridge", func(i *container.InspectResponse) {
			i.HostConfig.NetworkMode = "bridge"
			i.NetworkSettings = &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{"other": nil}}
		}, "network"},
		{"the same bridge by another name", func(i *container.InspectResponse) {
			i.HostConfig.NetworkMode = "bridge"
			i.NetworkSettings = &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{"none": nil}}
		}, ""},
		{"memory", func(i *container.InspectResponse) { i.HostConfig.Memory = 0 }, "memory limit"},
		{"swap", func(i *container.InspectResponse) { i.HostConfig.MemorySwap = -1 }, "memory and swap limit"},
		{"cpus", func(i *container.InspectResponse) { i.HostConfig.NanoCPUs = 0 }, "cpu limit"},
		{"pids", func(i *container.InspectResponse) { i.HostConfig.PidsLimit = nil }, "pids limit"},
		{"share of disks", func(i *container.InspectResponse) { i.HostConfig.BlkioWeight = 0 }, "share of disks"},
		{"rates of disks", func(i *container.InspectResponse) { i.HostConfig.BlkioDeviceWriteBps = nil }, "limits of disks"},
		{"storage", func(i *container.InspectResponse) { i.HostConfig.StorageOpt = nil }, "size of the root"},
		{"host's processes", func(i *container.InspectResponse) { i.HostConfig.PidMode = "host" }, "process namespace"},
		{"mount source", func(i *container.InspectResponse) { i.Mounts[0].Source = "/etc" }, "mount of /src at /dst"},
		{"writable mount", func(i *container.InspectResponse) { i.Mounts[0].RW = true }, "mount of /src at /dst"},
		{"mount gone", func(i *container.InspectResponse) { i.Mounts = i.Mounts[1:] }, "mount of /src at /dst"},
		{"another volume", func(i *container.InspectResponse) { i.Mounts[1].Name = "other" }, "mount of vol at /v"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := made()
			c.spoil(found)
			err := verify(asked(), found)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (!errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
