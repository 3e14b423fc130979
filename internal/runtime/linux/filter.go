package linux

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/seccomp"
)

// maxProfile bounds a profile file; Docker's own has 12 KiB.
const maxProfile = 1 << 20

// ownFilter is Atoll's own.
func ownFilter() ([]byte, error) { return seccomp.Compiled(runtime.GOARCH) }

// filterOf is the filter that a spec asks for.
func (r *Runtime) filterOf(spec *sandbox.Spec) ([]byte, error) {
	if spec.SeccompProfile == "" {
		return r.filter()
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
	program, err := seccomp.CompileProfile(text, runtime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.SeccompProfile, err)
	}
	return program.Bytes(), nil
}
