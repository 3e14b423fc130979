package linux

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// maxProfile bounds a profile file; Docker's own has 12 KiB.
const maxProfile = 1 << 20

// filterOf is the filter that a spec asks for.
func filterOf(spec *sandbox.Spec) ([]byte, error) {
	if spec.OpensNamespaces() {
		return seccomp.CompiledBrowser(runtime.GOARCH)
	}
	modes := seccomp.ModesFor(spec.WritesShared())
	if spec.SeccompProfile == "" {
		return seccomp.Compiled(runtime.GOARCH, modes)
	}
	f, err := os.Open(spec.SeccompProfile)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	if len(text) > maxProfile {
		return nil, fmt.Errorf("seccomp profile %s: larger than %d bytes: %w", spec.SeccompProfile, maxProfile, sandbox.ErrDenied)
	}
	program, err := seccomp.CompileProfile(text, runtime.GOARCH, modes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.SeccompProfile, err)
	}
	return program.Bytes(), nil
}
