package docker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// diskFields are the settings that limit reading and writing.
const diskFields = "docker.deviceReadBps, deviceWriteBps, deviceReadIOps or deviceWriteIOps"

// disksOf are the disks that hold the engine's files and the mounted
// directories, if any of them is to be limited.
func disksOf(known *facts, spec *sandbox.Spec) ([]blockdev.Disk, error) {
	if spec.Limits.IO == (sandbox.IO{}) {
		return nil, nil
	}
	own, bound := spec.Sources()
	return blockdev.Finder{}.All(append(own, known.DockerRootDir), bound)
}

// diskGaps are limits of disks that the engine would take and not keep.
func diskGaps(known *facts, spec *sandbox.Spec) []sandbox.Gap {
	disks, err := disksOf(known, spec)
	if err != nil {
		return []sandbox.Gap{{Field: diskFields, Reason: "limits of disks: " + err.Error(),
			Remedy: "keep the workspace and the engine's files on a disk of this machine, or remove the limits of disks"}}
	}
	if spec.Limits.IO.Weight == 0 {
		return nil
	}
	host, err := cgroups.Find()
	if err == nil {
		err = host.Weighs(disks)
	}
	if err == nil {
		return nil
	}
	return []sandbox.Gap{{Field: "docker.blkioWeight", Reason: "the share of a disk cannot be limited: " + err.Error(), Remedy: errhint.Of(err)}}
}

// limitDisks writes the rates down, the same for every disk.
func (r *recipe) limitDisks(to *container.Resources) {
	io := r.spec.Limits.IO
	to.BlkioWeight = uint16(io.Weight)
	for _, disk := range r.disks {
		for _, rate := range []struct {
			value int64
			list  *[]*blkiodev.ThrottleDevice
		}{
			{io.ReadBps, &to.BlkioDeviceReadBps}, {io.WriteBps, &to.BlkioDeviceWriteBps},
			{io.ReadIOps, &to.BlkioDeviceReadIOps}, {io.WriteIOps, &to.BlkioDeviceWriteIOps},
		} {
			if rate.value > 0 {
				*rate.list = append(*rate.list, &blkiodev.ThrottleDevice{Path: disk.Path(), Rate: uint64(rate.value)})
			}
		}
	}
}

// sameRates reports whether the engine kept all rates.
func sameRates(got, asked *container.HostConfig) bool {
	same := func(a, b []*blkiodev.ThrottleDevice) bool {
		return maps.Equal(ratesOf(a), ratesOf(b))
	}
	return same(got.BlkioDeviceReadBps, asked.BlkioDeviceReadBps) && same(got.BlkioDeviceWriteBps, asked.BlkioDeviceWriteBps) &&
		same(got.BlkioDeviceReadIOps, asked.BlkioDeviceReadIOps) && same(got.BlkioDeviceWriteIOps, asked.BlkioDeviceWriteIOps)
}

func ratesOf(list []*blkiodev.ThrottleDevice) map[string]uint64 {
	rates := map[string]uint64{}
	for _, device := range list {
		if device != nil {
			rates[device.Path] = device.Rate
		}
	}
	return rates
}

// storageDrivers are those of which the engine can bound what one container
// writes. That of overlays can on XFS with project quotas only; whether it has
// them, the engine says when it is asked.
var storageDrivers = []string{"btrfs", "zfs", "overlay2", "overlay"}

// storageGaps tell why the engine cannot bound the size of a root.
func storageGaps(known *facts, spec *sandbox.Spec) []sandbox.Gap {
	if storageOptions(spec) == nil {
		return nil
	}
	const field, instead = "docker.storageOpt", "remove docker.storageOpt; to bound files without it, keep docker.readOnlyRoot and give docker.tmpfs a size"
	if spec.Limits.Storage.Inodes > 0 {
		return []sandbox.Gap{{Field: field, Reason: "engines cannot limit the number of files", Remedy: "remove inodes, or set sandbox.backend to linux"}}
	}
	over := ""
	for _, status := range known.DriverStatus {
		if status[0] == "Backing Filesystem" {
			over = status[1]
		}
	}
	overlay := known.Driver == "overlay2" || known.Driver == "overlay"
	if slices.Contains(storageDrivers, known.Driver) && (!overlay || over == "xfs") {
		return nil
	}
	return []sandbox.Gap{{Field: field, Reason: fmt.Sprintf("the engine cannot bound a root with its storage driver %s on %s", known.Driver, over),
		Remedy: "put the engine's files on XFS with pquota, or " + instead}}
}

// storageOptions are the engine's; a root that is read-only needs none.
func storageOptions(spec *sandbox.Spec) map[string]string {
	s := spec.Limits.Storage
	if spec.ReadOnlyRoot || s == (sandbox.Storage{}) {
		return nil
	}
	return map[string]string{"size": strconv.FormatInt(s.Size, 10)}
}
