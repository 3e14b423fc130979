// Package seccomp holds Atoll's system call filter: which calls a program in a
// sandbox may make. The profile starts from moby's default, is resolved for a
// process without any capability, and loses what a sandbox has no use for.
//
// The package describes the filter as the JSON that Docker, Podman and OCI
// runtimes read, and compiles it for runtimes that load it themselves. Loading
// a filter into a process is a runtime's work.
package seccomp

import (
	"encoding/json"
	"fmt"
	"slices"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// machines are the architectures that Atoll has a guest for, by their Go names.
// Each filter covers its native calls only: a 64-bit kernel's 32-bit entry
// points are a second, less tested copy of the interface, and their socketcall
// would walk round the address families that socket refuses.
var machines = map[string]specs.Arch{
	"amd64": specs.ArchX86_64,
	"arm64": specs.ArchAARCH64,
}

// Profile returns the filter for programs of an architecture ("amd64",
// "arm64") whose files may have such modes. The same arguments always give the
// same bytes.
func Profile(arch string, modes Modes) ([]byte, error) {
	profile, err := describe(arch, modes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(profile)
}

// describe builds the filter. Whatever no rule allows fails with EPERM.
func describe(arch string, modes Modes) (*specs.LinuxSeccomp, error) {
	native, ok := machines[arch]
	if !ok {
		return nil, fmt.Errorf("seccomp profile: architecture %q is not supported", arch)
	}
	permissionDenied := uint(unix.EPERM)
	profile := &specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &permissionDenied,
		Architectures:   []specs.Arch{native},
		Syscalls:        rules(arch),
	}
	if modes == AnyMode {
		return profile, nil
	}
	return profile, restrict(profile)
}

// rules are moby's rules that hold for arch, without the calls we refuse.
func rules(arch string) []specs.LinuxSyscall {
	var kept []specs.LinuxSyscall
	for _, rule := range moby.DefaultProfile().Syscalls {
		if !applies(rule, arch) {
			continue
		}
		call := rule.LinuxSyscall
		call.Names = slices.DeleteFunc(slices.Clone(call.Names), isRefused)
		slices.Sort(call.Names)
		if len(call.Names) > 0 {
			kept = append(kept, call)
		}
	}
	return append(kept, families()...)
}

// families allow sockets of the address families that programs have a use for
// without a network: Unix, both versions of IP, and netlink, which name lookup
// asks for interfaces. A filter compares 64 bits and the kernel uses 32: only
// equality cannot be passed with a bit of the upper half.
func families() (rules []specs.LinuxSyscall) {
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		rules = append(rules, specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Op: specs.OpEqualTo, Value: family}},
		})
	}
	return append(rules, specs.LinuxSyscall{
		Names: []string{"socketpair"}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{{Index: 0, Op: specs.OpEqualTo, Value: unix.AF_UNIX}},
	})
}

// applies says whether a rule of moby's holds for a process of arch that has no
// capability. A minimal kernel version never excludes a rule: every kernel that
// runs Atoll is newer than the ones it asks for.
func applies(rule *moby.Syscall, arch string) bool {
	if in := rule.Includes; in != nil {
		if len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, arch) {
			return false
		}
	}
	return rule.Excludes == nil || !slices.Contains(rule.Excludes.Arches, arch)
}

// isRefused reports whether moby's rules for a call are left out: those of the
// calls that no rule allows, and of those that have rules of our own.
func isRefused(name string) bool {
	_, refused := refusals[name]
	return refused || name == "socket" || name == "socketpair"
}
