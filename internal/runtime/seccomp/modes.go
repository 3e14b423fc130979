package seccomp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Modes says which permissions the files of a sandbox may get.
type Modes string

const (
	// AnyMode allows set-user-ID and set-group-ID files. It is for sandboxes that
	// cannot write to a directory of the host.
	AnyMode Modes = "any"
	// PlainModes refuses them: a program that a sandbox leaves in a directory of
	// the host must not run with its owner's rights for other users.
	PlainModes Modes = "plain"
)

// ModesFor returns the modes of a sandbox that can write to a directory of the
// host, or cannot.
func ModesFor(writesHost bool) Modes {
	if writesHost {
		return PlainModes
	}
	return AnyMode
}

// setIDBits are the permission bits that make a program run with the rights of its
// file's owner or group.
const setIDBits = unix.S_ISUID | unix.S_ISGID

// creating are the flags with which open looks at its mode.
const creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// modeArgument is where a call has the mode of a file, and flags if it looks at
// the mode for some of them only; -1 if always.
type modeArgument struct{ mode, flags int }

// modeCalls are the calls that set the mode of a file. mkdir is not one of them:
// it takes no more than permissions and the sticky bit.
var modeCalls = map[string]modeArgument{
	"chmod": {1, -1}, "fchmod": {1, -1}, "fchmodat": {2, -1}, "fchmodat2": {2, -1},
	"creat": {1, -1}, "mknod": {1, -1}, "mknodat": {2, -1}, "open": {2, 1}, "openat": {3, 2},
}

// pointerCall has the mode behind a pointer, where no filter can look. Programs
// take openat where the kernel has no openat2.
const pointerCall = "openat2"

func setsMode(name string) bool {
	_, ok := modeCalls[name]
	return ok || name == pointerCall
}

// isPermissive reports whether an action lets a call through.
func isPermissive(action specs.LinuxSeccompAction) bool {
	return action == specs.ActAllow || action == specs.ActLog || action == specs.ActTrace || action == specs.ActNotify
}

// plainModes returns the rules that a rule becomes where files may have plain modes
// only. Of a profile that allows everything else, nothing remains for the calls
// that set modes: plainDefault refuses what has to be.
func plainModes(rule specs.LinuxSyscall, otherwise specs.LinuxSeccompAction) ([]specs.LinuxSyscall, error) {
	if !slices.ContainsFunc(rule.Names, setsMode) {
		return []specs.LinuxSyscall{rule}, nil
	}
	if len(rule.Args) > 0 {
		return nil, fmt.Errorf("seccomp profile: %v: conditions on a call that sets the mode of files", rule.Names)
	}
	if !isPermissive(rule.Action) {
		return []specs.LinuxSyscall{rule}, nil
	}
	rest := rule
	rest.Names = slices.DeleteFunc(slices.Clone(rule.Names), setsMode)
	var split []specs.LinuxSyscall
	if len(rest.Names) > 0 {
		split = append(split, rest)
	}
	if isPermissive(otherwise) {
		return split, nil
	}
	for _, name := range rule.Names {
		split = append(split, allowPlain(name, rule)...)
	}
	return split, nil
}

// allowPlain lets a call through as rule does, if the mode it sets is plain, or
// if it looks at none.
func allowPlain(name string, rule specs.LinuxSyscall) []specs.LinuxSyscall {
	call, ok := modeCalls[name]
	if !ok {
		return nil
	}
	rule.Names, rule.Args = []string{name}, []specs.LinuxSeccompArg{without(call.mode, setIDBits)}
	rules := []specs.LinuxSyscall{rule}
	if call.flags >= 0 {
		rule.Args = []specs.LinuxSeccompArg{without(call.flags, creating)}
		rules = append(rules, rule)
	}
	return rules
}

// plainDefault returns what is added to rules that plainModes has split. Calls
// that a rule refuses always need nothing.
func plainDefault(rules []specs.LinuxSyscall, otherwise specs.LinuxSeccompAction) (added []specs.LinuxSyscall) {
	refused := map[string]bool{}
	for _, rule := range rules {
		for _, name := range rule.Names {
			refused[name] = refused[name] || !isPermissive(rule.Action)
		}
	}
	if !refused[pointerCall] {
		missing := uint(unix.ENOSYS)
		added = append(added, specs.LinuxSyscall{Names: []string{pointerCall}, Action: specs.ActErrno, ErrnoRet: &missing})
	}
	if !isPermissive(otherwise) {
		return added
	}
	for _, name := range slices.Sorted(maps.Keys(modeCalls)) {
		if !refused[name] {
			added = append(added, refuseSetID(name)...)
		}
	}
	return added
}

// refuseSetID refuses a call that sets either of the bits.
func refuseSetID(name string) (rules []specs.LinuxSyscall) {
	call, denied := modeCalls[name], uint(unix.EPERM)
	for _, bit := range []uint64{unix.S_ISUID, unix.S_ISGID} {
		conditions := [][]specs.LinuxSeccompArg{{with(call.mode, bit)}}
		if call.flags >= 0 {
			conditions = [][]specs.LinuxSeccompArg{
				{with(call.mode, bit), with(call.flags, unix.O_CREAT)},
				{with(call.mode, bit), with(call.flags, creating&^unix.O_CREAT)},
			}
		}
		for _, args := range conditions {
			rules = append(rules, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActErrno, ErrnoRet: &denied, Args: args})
		}
	}
	return rules
}

// without holds if an argument has none of the bits.
func without(argument int, bits uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: uint(argument), Op: specs.OpMaskedEqual, Value: bits}
}

// with holds if an argument has the bit.
func with(argument int, bit uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: uint(argument), Op: specs.OpMaskedEqual, Value: bit, ValueTwo: bit}
}

// restrict leaves files plain modes only, in a profile whose rules were resolved
// for one architecture.
func restrict(profile *specs.LinuxSeccomp) error {
	var split []specs.LinuxSyscall
	for _, rule := range profile.Syscalls {
		rules, err := plainModes(rule, profile.DefaultAction)
		if err != nil {
			return err
		}
		split = append(split, rules...)
	}
	profile.Syscalls = append(split, plainDefault(split, profile.DefaultAction)...)
	return nil
}
