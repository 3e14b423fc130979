package seccomp

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// verdict is what the filter answers to one call: 0 for allowed, otherwise the
// error number. It reads the profile as runtimes do: several rules for one call
// are alternatives.
func verdict(t *testing.T, arch, name string, args ...uint64) unix.Errno {
	t.Helper()
	return verdictOf(t, arch, AnyMode, name, args...)
}

// verdictOf is verdict for other modes, or for browsers.
func verdictOf(t *testing.T, arch string, modes Modes, name string, args ...uint64) unix.Errno {
	t.Helper()
	profile, err := describeAny(arch, modes)
	if err != nil {
		t.Fatal(err)
	}
	answer := unix.Errno(*profile.DefaultErrnoRet)
	for _, rule := range profile.Syscalls {
		if !slices.Contains(rule.Names, name) || !matches(rule.Args, args) {
			continue
		}
		if rule.Action == specs.ActAllow {
			return 0
		}
		answer = unix.Errno(*rule.ErrnoRet)
	}
	return answer
}

func matches(conditions []specs.LinuxSeccompArg, args []uint64) bool {
	for _, c := range conditions {
		var value uint64
		if int(c.Index) < len(args) {
			value = args[c.Index]
		}
		if !holds(c, value) {
			return false
		}
	}
	return true
}

func holds(c specs.LinuxSeccompArg, value uint64) bool {
	switch c.Op {
	case specs.OpEqualTo:
		return value == c.Value
	case specs.OpLessThan:
		return value < c.Value
	case specs.OpGreaterThan:
		return value > c.Value
	case specs.OpMaskedEqual:
		return value&c.Value == c.ValueTwo
	}
	panic("operator not known to the test: " + string(c.Op))
}

func TestProfileAnswers(t *testing.T) {
	const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	cases := []struct {
		name string
		call string
		args []uint64
		want unix.Errno
	}{
		{"reading", "read", nil, 0},
		{"opening below a directory", "openat2", nil, 0},
		{"running a program", "execve", nil, 0},
		{"own seccomp filter, as browsers set", "seccomp", nil, 0},
		{"landlock, as careful programs set", "landlock_restrict_self", nil, 0},
		{"thread", "clone", []uint64{threadFlags}, 0},
		{"fork", "clone", []uint64{uint64(unix.SIGCHLD)}, 0},
		{"vfork", "vfork", nil, 0},
		{"unix socket", "socket", []uint64{unix.AF_UNIX}, 0},
		{"internet socket", "socket", []uint64{unix.AF_INET6}, 0},
		{"netlink, as name lookup uses", "socket", []uint64{unix.AF_NETLINK}, 0},
		{"asking for the personality", "personality", []uint64{0xffffffff}, 0},
		{"usual personality", "personality", []uint64{0}, 0},
		{"pidfd", "pidfd_open", nil, 0},
		{"file watch", "inotify_init1", nil, 0},

		{"clone3 falls back to clone", "clone3", nil, unix.ENOSYS},
		{"new user namespace by clone", "clone", []uint64{unix.CLONE_NEWUSER}, unix.EPERM},
		{"new network namespace by clone", "clone", []uint64{unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, unix.EPERM},
		{"new mount namespace by clone", "clone", []uint64{unix.CLONE_NEWNS}, unix.EPERM},
		{"unshare", "unshare", []uint64{unix.CLONE_NEWUSER}, unix.EPERM},
		{"setns", "setns", nil, unix.EPERM},
		{"address space randomisation off", "personality", []uint64{0x0040000}, unix.EPERM},
		{"kernel crypto sockets", "socket", []uint64{unix.AF_ALG}, unix.EPERM},
		{"pair of unix sockets", "socketpair", []uint64{unix.AF_UNIX}, 0},
		{"pair of sockets of another family", "socketpair", []uint64{unix.AF_TIPC}, unix.EPERM},
		{"sockets of no family", "socket", []uint64{unix.AF_UNSPEC}, unix.EPERM},
		{"raw packets", "socket", []uint64{unix.AF_PACKET}, unix.EPERM},
		{"buses of cars", "socket", []uint64{unix.AF_CAN}, unix.EPERM},
		{"reliable datagrams", "socket", []uint64{unix.AF_RDS}, unix.EPERM},
		{"clusters", "socket", []uint64{unix.AF_TIPC}, unix.EPERM},
		{"bluetooth", "socket", []uint64{unix.AF_BLUETOOTH}, unix.EPERM},
		{"near-field communication, just above kernel crypto", "socket", []uint64{unix.AF_NFC}, unix.EPERM},
		{"sockets to the hypervisor", "socket", []uint64{unix.AF_VSOCK}, unix.EPERM},
		{"kernel crypto sockets, with a bit that the kernel does not look at", "socket", []uint64{unix.AF_ALG | 1<<32}, unix.EPERM},
		{"call that nobody knows", "no_such_call", nil, unix.EPERM},
	}
	for arch := range machines {
		for _, c := range cases {
			t.Run(arch+"/"+c.name, func(t *testing.T) {
				if got := verdict(t, arch, c.call, c.args...); got != c.want {
					t.Errorf("%s%v: got %q, want %q", c.call, c.args, got, c.want)
				}
			})
		}
	}
}

func TestProfileRefusesEveryNamedCall(t *testing.T) {
	for arch := range machines {
		for name := range refusals {
			if got := verdict(t, arch, name); got != unix.EPERM {
				t.Errorf("%s: %s answers %q, want EPERM", arch, name, got)
			}
		}
	}
}

// No rule of moby's that needs a capability survives, whichever it is.
func TestProfileIsForNoCapability(t *testing.T) {
	for _, rule := range moby.DefaultProfile().Syscalls {
		if rule.Includes == nil || len(rule.Includes.Caps) == 0 {
			continue
		}
		for _, name := range rule.Names {
			if name == "clone" || name == "clone3" {
				continue // have a rule of their own for processes without it
			}
			if got := verdict(t, "amd64", name); got != unix.EPERM {
				t.Errorf("%s needs %v, but answers %q", name, rule.Includes.Caps, got)
			}
		}
	}
}

func TestProfileFollowsTheArchitecture(t *testing.T) {
	if got := verdict(t, "amd64", "arch_prctl"); got != 0 {
		t.Errorf("amd64: arch_prctl answers %q", got)
	}
	if got := verdict(t, "arm64", "arch_prctl"); got != unix.EPERM {
		t.Errorf("arm64: arch_prctl answers %q", got)
	}
	if _, err := Profile("pdp11", AnyMode); err == nil {
		t.Error("an unknown architecture got a profile")
	}
}

func TestProfileIsDeterministicJSON(t *testing.T) {
	first, err := Profile("amd64", AnyMode)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, _ := Profile("amd64", AnyMode); !bytes.Equal(first, again) {
			t.Fatal("two profiles of one architecture differ")
		}
	}
	var read specs.LinuxSeccomp
	if err := json.Unmarshal(first, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Syscalls) == 0 || !slices.Equal(read.Architectures, []specs.Arch{specs.ArchX86_64}) {
		t.Errorf("profile reads back as %d rules for %v", len(read.Syscalls), read.Architectures)
	}
}

// applies ignores minimal kernel versions; that is right only while they are old.
func TestMobyAsksOnlyForOldKernels(t *testing.T) {
	for _, rule := range moby.DefaultProfile().Syscalls {
		if in := rule.Includes; in != nil && in.MinKernel != nil && in.MinKernel.Kernel >= 5 {
			t.Errorf("rule for %v needs kernel %s", rule.Names, in.MinKernel)
		}
	}
}
