package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// CompileProfile compiles a profile in Docker's format, as a configuration may
// name one, for a process without any capability whose files may have such
// modes. What this package cannot enforce is an error, never left out.
func CompileProfile(text []byte, arch string, modes Modes) (Program, error) {
	if _, ok := machines[arch]; !ok {
		return nil, fmt.Errorf("seccomp profile: architecture %q is not supported", arch)
	}
	read, err := readProfile(text)
	if err != nil {
		return nil, err
	}
	if len(read.Flags) > 0 || read.ListenerPath != "" {
		return nil, errors.New("seccomp profile: flags and listenerPath are not supported")
	}
	resolved := read.LinuxSeccomp
	resolved.Syscalls = nil
	for _, rule := range read.Syscalls {
		if !applies(rule, arch) {
			continue
		}
		resolved.Syscalls = append(resolved.Syscalls, rule.LinuxSyscall)
	}
	if resolved.DefaultAction == specs.ActAllow && len(resolved.Syscalls) == 0 {
		return nil, errors.New("seccomp profile: allows every call")
	}
	if modes != AnyMode {
		if err := restrict(&resolved); err != nil {
			return nil, err
		}
	}
	return assemble(&resolved, arch)
}

// readProfile reads a profile in Docker's format.
func readProfile(text []byte) (*moby.Seccomp, error) {
	var read moby.Seccomp
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	for _, rule := range read.Syscalls {
		if rule.Name != "" { //nolint:staticcheck // old profiles have it, and a rule that is not seen is a hole
			rule.Names, rule.Name = append(rule.Names, rule.Name), "" //nolint:staticcheck // see above
		}
	}
	return &read, nil
}

// PlainProfile returns a profile in Docker's format that leaves files plain
// modes only, and otherwise decides as the given one does.
func PlainProfile(text []byte) ([]byte, error) {
	read, err := readProfile(text)
	if err != nil {
		return nil, err
	}
	var split []*moby.Syscall
	var seen []specs.LinuxSyscall
	for _, rule := range read.Syscalls {
		rules, err := plainModes(rule.LinuxSyscall, read.DefaultAction)
		if err == nil && isOptional(rule) {
			err = fmt.Errorf("seccomp profile: %v: refused for some containers only, of calls that set the mode of files", rule.Names)
		}
		if err != nil {
			return nil, err
		}
		seen = append(seen, rules...)
		for _, call := range rules {
			part := *rule
			part.LinuxSyscall = call
			split = append(split, &part)
		}
	}
	for _, call := range plainDefault(seen, read.DefaultAction) {
		split = append(split, &moby.Syscall{LinuxSyscall: call})
	}
	read.Syscalls = split
	return json.Marshal(read)
}

// isOptional reports whether a rule refuses to set modes, but not in every
// container.
func isOptional(rule *moby.Syscall) bool {
	return (rule.Includes != nil || rule.Excludes != nil) && !isPermissive(rule.Action) && slices.ContainsFunc(rule.Names, setsMode)
}
