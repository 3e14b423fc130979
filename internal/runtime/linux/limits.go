package linux

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// guestPidsReserve is added to the pids limit, so that a fork bomb leaves the guest
// its own threads.
const guestPidsReserve = 32

// groupHome is where a sandbox sees its control group.
const groupHome = "/sys/fs/cgroup"

// groupLimits returns the limits that need a control group.
func (r *Runtime) groupLimits(spec *sandbox.Spec) (cgroups.Limits, error) {
	l := spec.Limits.WithDefaults(r.Enforceable(spec))
	g := cgroups.Limits{Memory: l.Memory, MemorySwap: l.MemorySwap, CPUs: l.CPUs}
	if l.Pids > 0 {
		g.Pids = l.Pids + guestPidsReserve
	}
	if l.Memory == 0 {
		g.MemorySwap = 0 // of nothing
	}
	if l.IO == (sandbox.IO{}) {
		return g, nil
	}
	disks, err := r.disks(spec)
	g.IO = cgroups.IO{Disks: disks, Weight: l.IO.Weight, ReadBps: l.IO.ReadBps, WriteBps: l.IO.WriteBps, ReadIOps: l.IO.ReadIOps, WriteIOps: l.IO.WriteIOps}
	return g, err
}

// disks returns the disks that hold the root and the mounted directories of the
// host.
func (r *Runtime) disks(spec *sandbox.Spec) ([]blockdev.Disk, error) {
	own, bound := spec.Sources()
	own = append(own, r.options.StateDir)
	if IsHostImage(spec.Image) {
		own = append(own, "/usr")
	}
	return blockdev.Finder{}.All(own, bound)
}

// groupViews returns the directories of a group with their paths inside.
func groupViews(g *cgroups.Group) []bound {
	var views []bound
	for _, dir := range g.Dirs {
		views = append(views, bound{dir.Path, path.Join(groupHome, dir.Controller)})
	}
	slices.SortFunc(views, func(a, b bound) int { return strings.Compare(a.target, b.target) })
	return views
}

// resources are the limits of single processes, by Docker's names. Two of Docker's
// are missing, because the guest identifies process trees by them.
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
	"memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS, "rtprio": unix.RLIMIT_RTPRIO, "sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// rlimits returns the resource limits of a sandbox. Core files are not written
// unless configured: where they go is the host's setting.
func rlimits(asked []sandbox.Ulimit) ([]blueprint.Limit, error) {
	limits := append(userShares(), blueprint.Limit{Resource: unix.RLIMIT_CORE})
	for _, u := range asked {
		resource, ok := resources[u.Name]
		if !ok {
			return nil, fmt.Errorf("ulimit %q is not known: %w", u.Name, sandbox.ErrUnsupported)
		}
		limits = slices.DeleteFunc(limits, func(l blueprint.Limit) bool { return l.Resource == resource })
		limits = append(limits, blueprint.Limit{Resource: resource, Soft: limitValue(u.Soft), Hard: limitValue(u.Hard)})
	}
	return limits, nil
}

func limitValue(v int64) uint64 {
	if v < 0 {
		return math.MaxUint64 // unlimited
	}
	return uint64(v)
}
