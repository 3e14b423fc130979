package docker

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
)

// facts are what the engine reports of itself.
type facts struct {
	system.Info
	where EngineLocation
}

// facts returns what the engine said last, asking if it was never asked.
func (r *Runtime) facts(ctx context.Context) (*facts, error) {
	r.factsLock.Lock()
	known := r.known
	r.factsLock.Unlock()
	if known != nil {
		return known, nil
	}
	return r.askFacts(ctx)
}

// askFacts asks the engine now: it may have been restarted with other settings.
func (r *Runtime) askFacts(ctx context.Context) (*facts, error) {
	info, err := ask(ctx, r.engine, func(c *client.Client) (client.SystemInfoResult, error) {
		return c.Info(ctx, client.InfoOptions{})
	})
	if err != nil {
		return nil, err
	}
	f := &facts{Info: info.Info, where: r.options.Location}
	if f.where == LocationUnknown {
		f.where = f.location(r.options.Host)
	}
	if r.options.Flavor == Podman {
		if err := r.readPodmanInfo(ctx, f); err != nil {
			return nil, err
		}
	}
	r.factsLock.Lock()
	defer r.factsLock.Unlock()
	r.known = f
	return f, nil
}

// location guesses whether the engine shares this machine's files and
// processes: it answers on a unix socket, and names our kernel and our host
// name. An engine in a virtual machine fails the first, one reached through a
// mounted socket from inside a container the second. Options.Location overrules it.
func (f *facts) location(host string) EngineLocation {
	var ours unix.Utsname
	name, err := os.Hostname()
	if err != nil || unix.Uname(&ours) != nil || !strings.HasPrefix(host, "unix://") {
		return Remote
	}
	if f.KernelVersion != unix.ByteSliceToString(ours.Release[:]) || f.Name != name {
		return Remote
	}
	return Nearby
}

// secured reports whether a security option ("seccomp", "rootless", …) is on.
func (f *facts) secured(option string) bool {
	return slices.ContainsFunc(f.SecurityOptions, func(entry string) bool {
		for field := range strings.SplitSeq(entry, ",") {
			if field == "name="+option || field == option {
				return true
			}
		}
		return false
	})
}

// mapsUsers reports whether a uid inside is another uid on the host.
func (f *facts) mapsUsers() bool { return f.secured("userns") || f.secured("rootless") }

// majorVersion is the engine's own, 0 if it does not say.
func (f *facts) majorVersion() int {
	major, _, _ := strings.Cut(f.ServerVersion, ".")
	n, _ := strconv.Atoi(major)
	return n
}
