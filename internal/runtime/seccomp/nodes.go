package seccomp

import (
	"encoding/json"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// NodeProfile returns the filter for nodes of a cluster, whose engine starts the guest with
// it. It is Profile for plain modes, as volumes are directories of the node, and lets the
// guest make and enter a user, a network and a mount namespace and mount empty files and
// directories there; the guest refuses that to everything it starts.
func NodeProfile(arch string) ([]byte, error) {
	profile, err := describe(arch, PlainModes)
	if err != nil {
		return nil, err
	}
	profile.Syscalls = slices.DeleteFunc(profile.Syscalls, func(rule specs.LinuxSyscall) bool { return slices.Contains(rule.Names, "clone") })
	profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
		Names: []string{"clone"}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{without(0, unix.CLONE_NEWCGROUP|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWPID)},
	})
	for _, kind := range []uint64{unix.CLONE_NEWUSER, unix.CLONE_NEWNET, unix.CLONE_NEWNS} {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
			Names: []string{"setns"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 1, Op: specs.OpEqualTo, Value: kind}},
		})
	}
	for _, flags := range []uint64{unix.MS_BIND, unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC} {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
			Names: []string{"mount"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 3, Op: specs.OpEqualTo, Value: flags}},
		})
	}
	return json.Marshal(profile)
}
