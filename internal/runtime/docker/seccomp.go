package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// maxProfile bounds a profile file; Docker's own has 12 KiB.
const maxProfile = 1 << 20

// seccompOption is the value of the seccomp security option: Docker wants the
// profile itself, Podman a path that its service can read.
func (r *Runtime) seccompOption(spec *sandbox.Spec, arch string) (string, error) {
	profile, err := profileOf(spec, arch)
	if err != nil {
		return "", err
	}
	if r.options.Flavor == Podman {
		return r.seccompFile(profile)
	}
	return string(profile), nil
}

func profileOf(spec *sandbox.Spec, arch string) ([]byte, error) {
	if spec.OpensNamespaces() {
		return seccomp.BrowserProfile(arch)
	}
	return seccompProfile(spec.SeccompProfile, arch, seccomp.ModesFor(spec.WritesShared()))
}

func seccompProfile(path, arch string, modes seccomp.Modes) ([]byte, error) {
	if path == "" {
		return seccomp.Profile(arch, modes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	defer f.Close()
	profile, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	if err := checkProfile(path, profile); err != nil || modes == seccomp.AnyMode {
		return profile, err
	}
	profile, err = seccomp.PlainProfile(profile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return profile, nil
}

// checkProfile refuses what is not a profile at all, and one that filters
// nothing: it would be "unconfined" by another name.
func checkProfile(path string, profile []byte) error {
	if len(profile) > maxProfile {
		return fmt.Errorf("seccomp profile %s: larger than %d bytes: %w", path, maxProfile, sandbox.ErrDenied)
	}
	var read struct {
		DefaultAction string            `json:"defaultAction"`
		Syscalls      []json.RawMessage `json:"syscalls"`
	}
	if err := json.Unmarshal(profile, &read); err != nil {
		return fmt.Errorf("seccomp profile %s: %w", path, err)
	}
	if read.DefaultAction == "" {
		return fmt.Errorf("seccomp profile %s: defaultAction is missing", path)
	}
	if read.DefaultAction == "SCMP_ACT_ALLOW" && len(read.Syscalls) == 0 {
		return fmt.Errorf("seccomp profile %s: allows every call: %w", path, sandbox.ErrDenied)
	}
	return nil
}

// seccompFile keeps a profile where Podman's service finds it, now and whenever
// the container is started again.
func (r *Runtime) seccompFile(profile []byte) (string, error) {
	sum := sha256.Sum256(profile)
	dir := filepath.Join(r.options.StateDir, "seccomp")
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")
	if kept, err := os.ReadFile(path); err == nil && sha256.Sum256(kept) == sum {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("seccomp profile: %w", err)
	}
	return path, writeWhole(dir, path, profile, 0o644)
}
