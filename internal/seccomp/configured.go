package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// CompileProfile compiles a profile in Docker's format, as a configuration may
// name one, for a process without any capability. What this package cannot
// enforce is an error, never left out.
func CompileProfile(text []byte, arch string) (Program, error) {
	if _, ok := machines[arch]; !ok {
		return nil, fmt.Errorf("seccomp profile: architecture %q is not supported", arch)
	}
	var read moby.Seccomp
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
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
		call := rule.LinuxSyscall
		if rule.Name != "" { //nolint:staticcheck // profiles of old have it, and a rule that is not seen is a hole
			call.Names = append(call.Names, rule.Name) //nolint:staticcheck // see above
		}
		resolved.Syscalls = append(resolved.Syscalls, call)
	}
	if resolved.DefaultAction == specs.ActAllow && len(resolved.Syscalls) == 0 {
		return nil, errors.New("seccomp profile: allows every call")
	}
	return assemble(&resolved, arch)
}
