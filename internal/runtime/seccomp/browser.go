package seccomp

import (
	"encoding/json"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// BrowserProfile returns the filter of a sandbox in which Chromium runs with its own
// sandbox. It adds to our profile what that needs: new user, process and network
// namespaces, and chroot. A process that makes a user namespace has every capability
// in it, so what these would open is refused: netlink, raw sockets and the socket
// options of packet filters. Files have plain modes only.
func BrowserProfile(arch string) ([]byte, error) {
	profile, err := describeBrowser(arch)
	if err != nil {
		return nil, err
	}
	return json.Marshal(profile)
}

// CompiledBrowser returns the filter of BrowserProfile as Compile and Bytes would.
func CompiledBrowser(arch string) ([]byte, error) { return Compiled(arch, browserFile) }

// browserFile is the name of the compiled filters of browsers.
const browserFile = "browser"

func describeBrowser(arch string) (*specs.LinuxSeccomp, error) {
	profile, err := describe(arch, PlainModes)
	if err != nil {
		return nil, err
	}
	var kept []specs.LinuxSyscall
	for _, rule := range profile.Syscalls {
		rule.Names = slices.DeleteFunc(slices.Clone(rule.Names), isBrowserRule)
		if len(rule.Names) > 0 {
			kept = append(kept, rule)
		}
	}
	kept = append(kept, browserNamespaces()...)
	kept = append(kept, browserSockets()...)
	profile.Syscalls = append(kept, browserOptions()...)
	return profile, nil
}

// isBrowserRule reports whether a browser has rules of its own for a call.
func isBrowserRule(name string) bool {
	return slices.Contains([]string{"clone", "unshare", "chroot", "socket", "getsockopt", "setsockopt"}, name)
}

// otherNamespaces are the kinds of namespaces that Chromium's sandbox does not make.
const otherNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// browserNamespaces allow the namespaces of Chromium's sandbox. Each of the three rules
// is needed: without it no zygote starts.
func browserNamespaces() []specs.LinuxSyscall {
	return []specs.LinuxSyscall{
		allow([]string{"clone"}, without(0, otherNamespaces)),
		allow([]string{"unshare"}, equal(0, unix.CLONE_NEWUSER)),
		allow([]string{"chroot"}),
	}
}

// typeMask has the bits of a socket's type; the others are flags.
const typeMask = 15

// browserSockets allow sockets of the families and types that Chromium uses.
func browserSockets() (rules []specs.LinuxSyscall) {
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		types := []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM}
		if family == unix.AF_UNIX {
			types = append(types, unix.SOCK_SEQPACKET)
		}
		for _, kind := range types {
			isType := specs.LinuxSeccompArg{Index: 1, Op: specs.OpMaskedEqual, Value: typeMask, ValueTwo: kind}
			rules = append(rules, allow([]string{"socket"}, equal(0, family), isType))
		}
	}
	return rules
}

// firstFilterOption is the first socket option of IP that belongs to packet filters.
const firstFilterOption = 64

// browserOptions allow the options of sockets, of TCP and of UDP, and those of IP that
// are not of packet filters.
func browserOptions() (rules []specs.LinuxSyscall) {
	calls := []string{"getsockopt", "setsockopt"}
	for _, level := range []uint64{unix.SOL_SOCKET, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		rules = append(rules, allow(calls, equal(1, level)))
	}
	for _, level := range []uint64{unix.IPPROTO_IP, unix.IPPROTO_IPV6} {
		isPlain := specs.LinuxSeccompArg{Index: 2, Op: specs.OpLessThan, Value: firstFilterOption}
		rules = append(rules, allow(calls, equal(1, level), isPlain))
	}
	return rules
}

func allow(names []string, args ...specs.LinuxSeccompArg) specs.LinuxSyscall {
	return specs.LinuxSyscall{Names: names, Action: specs.ActAllow, Args: args}
}

// equal holds if all 64 bits of an argument are those of value.
func equal(argument int, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: uint(argument), Op: specs.OpEqualTo, Value: value}
}
