package seccomp

import (
	"encoding/json"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// NodeProfile returns the filter for nodes of a cluster, whose engine starts the guest with
// it. It is Profile, and lets the guest make and enter a user and a network namespace; the
// guest refuses that to everything it starts.
func NodeProfile(arch string) ([]byte, error) {
	profile, err := describe(arch, AnyMode)
	if err != nil {
		return nil, err
	}
	profile.Syscalls = slices.DeleteFunc(profile.Syscalls, func(rule specs.LinuxSyscall) bool { return slices.Contains(rule.Names, "clone") })
	profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
		Names: []string{"clone"}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{without(0, unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWPID)},
	})
	for _, kind := range []uint64{unix.CLONE_NEWUSER, unix.CLONE_NEWNET} {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{
			Names: []string{"setns"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 1, Op: specs.OpEqualTo, Value: kind}},
		})
	}
	return json.Marshal(profile)
}
