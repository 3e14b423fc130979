package provide

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// BackendKubernetes makes pods of a cluster. Its runtime is in a program of its own,
// so that the others do not carry the libraries of clusters.
const BackendKubernetes = "kubernetes"

// KubeProgram is the program with the runtime of BackendKubernetes.
const KubeProgram = "atoll-kube"

// OpenRuntime opens the runtime of a backend that a program brings along.
type OpenRuntime func(ctx context.Context, in *Installation) (sandbox.Runtime, error)

// The reason and the remedy where a backend is in another program.
const (
	kubeMissing = "the kubernetes backend is in the program " + KubeProgram + ", which is neither beside this one nor in PATH"
	kubeRemedy  = "install " + KubeProgram + " beside atoll (`make build` makes both), or set sandbox.backend to auto, linux, docker or podman"
)

// OtherProgram returns the path of the program that has a runtime which an agent is
// configured for and this one lacks; "" if there is none, or it is not installed.
func (s *Settings) OtherProgram() string {
	if s.Runtimes[BackendKubernetes] != nil || !slices.ContainsFunc(s.Config.Agents(), s.usesKubernetes) {
		return ""
	}
	return findProgram(KubeProgram)
}

func (s *Settings) usesKubernetes(agent string) bool {
	resolved, err := s.Config.Resolve(agent)
	return err == nil && resolved.Sandbox.Backend == BackendKubernetes
}

// findProgram looks for a program beside this one, then in PATH.
func findProgram(name string) string {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// brought opens, once, the runtime of a backend that this program brings along.
func (r *runtimes) brought(ctx context.Context, backend string, open OpenRuntime) (sandbox.Runtime, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rt := r.others[backend]; rt != nil {
		return rt, nil
	}
	rt, err := open(ctx, r.in)
	if err != nil {
		return nil, err
	}
	if r.others == nil {
		r.others = map[string]sandbox.Runtime{}
	}
	r.others[backend] = rt
	return rt, nil
}
