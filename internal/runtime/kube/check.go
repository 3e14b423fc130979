package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Check returns what pods of this cluster cannot enforce of spec. A cluster that does not
// answer can enforce nothing.
func (r *Runtime) Check(ctx context.Context, spec *sandbox.Spec) []sandbox.Gap {
	gaps := r.specGaps(spec)
	c, err := r.cluster()
	if err == nil {
		err = errors.Join(c.checkRuntimeClass(ctx, r.settings.RuntimeClass), r.checkProvider(ctx, c))
	}
	if err != nil {
		gaps = append(gaps, sandbox.Gap{Field: "backend", Reason: err.Error(), Remedy: errhint.Of(err)})
	}
	return gaps
}

// checkRuntimeClass asks for the RuntimeClass. Where we may not, the pod tells.
func (c *cluster) checkRuntimeClass(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.api.Resource(runtimeClasses).Get(ctx, name, metav1.GetOptions{})
	if errors.Is(explain(err), sandbox.ErrNotFound) {
		return errhint.With(fmt.Errorf("the cluster has no RuntimeClass %q", name), "make it, or change kubernetes.runtimeClass")
	}
	return nil
}

// specGaps are the gaps that need no look at the cluster.
func (r *Runtime) specGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, check := range []func(*sandbox.Spec) []sandbox.Gap{kindGaps, mountGaps, targetGaps, tmpfsGaps, profileGaps, limitGaps, userGaps} {
		gaps = append(gaps, check(spec)...)
	}
	return append(append(gaps, networkGaps(spec, &r.settings)...), pidsGaps(spec, &r.settings)...)
}

func kindGaps(spec *sandbox.Spec) []sandbox.Gap {
	if !spec.IsBrowser() {
		return nil
	}
	return []sandbox.Gap{{Field: "sandbox.browser", Reason: "the kubernetes backend has no browsers yet", Remedy: "set sandbox.browser.enabled to false, or sandbox.backend to docker or linux"}}
}

// mountGaps are the directories of this host, which a cluster does not have. Private
// copies are sent and fetched, programs of runs are sent.
func mountGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, m := range spec.Mounts {
		switch {
		case m.Overlay != nil:
			gaps = append(gaps, sandbox.Gap{Field: "overlay.kind", Reason: m.Source + " is to be seen through an overlay, and the cluster does not have that directory",
				Remedy: "set sandbox.workspaceAccess to none, which works on a private copy"})
		case isProgram(&m):
		case !m.Enclosed || m.ReadOnly:
			gaps = append(gaps, sandbox.Gap{Field: "sandbox.workspaceAccess", Reason: m.Source + " is a directory of this host, which the cluster does not have",
				Remedy: "set sandbox.workspaceAccess to none, which works on a private copy, and remove docker.binds"})
		}
	}
	for _, v := range spec.Volumes {
		gaps = append(gaps, sandbox.Gap{Field: "docker.volumes", Reason: "the kubernetes backend has no volume " + v.Name, Remedy: "remove it"})
	}
	if spec.TrustedRoots != "" {
		gaps = append(gaps, sandbox.Gap{Field: "sandbox.egress", Reason: "the kubernetes backend cannot give a sandbox certificates to trust, which looking into its requests needs",
			Remedy: "leave out inspect and secrets of sandbox.egress, or build the certificates into the image"})
	}
	return gaps
}

// isProgram reports whether a mount is a single program of a run, of which each pod gets a
// copy.
func isProgram(m *sandbox.Mount) bool {
	info, err := os.Stat(m.Source)
	return m.Kind == sandbox.MountProgram && err == nil && info.Mode().IsRegular()
}

// targetGaps are paths inside that belong to others.
func targetGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	var targets []string
	for _, m := range spec.Mounts {
		targets = append(targets, m.Target)
	}
	for _, t := range spec.Tmpfs {
		targets = append(targets, t.Target)
	}
	for _, target := range targets {
		if reserved(target) {
			gaps = append(gaps, sandbox.Gap{Field: "docker.tmpfs", Reason: target + " is the guest's or the kernel's", Remedy: "choose another path", Wrong: true})
		}
	}
	return gaps
}

func profileGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for field, value := range map[string]string{"docker.seccompProfile": spec.SeccompProfile, "docker.apparmorProfile": spec.AppArmorProfile, "docker.gpus": spec.GPUs} {
		if value != "" {
			gaps = append(gaps, sandbox.Gap{Field: field, Reason: "the kubernetes backend cannot do that", Remedy: "remove it"})
		}
	}
	if !slices.ContainsFunc(spec.CapDrop, func(name string) bool { return strings.EqualFold(name, "ALL") }) {
		gaps = append(gaps, sandbox.Gap{Field: "docker.capDrop", Reason: "pods of sandboxes have no capabilities", Remedy: `set it to ["ALL"]`})
	}
	return gaps
}

func limitGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	limits := spec.Limits
	for field, asked := range map[string]bool{
		"docker.ulimits": len(limits.Ulimits) > 0, "docker.io": limits.IO != sandbox.IO{}, "docker.storageOpt": limits.Storage.Inodes > 0,
	} {
		if asked {
			gaps = append(gaps, sandbox.Gap{Field: field, Reason: "Kubernetes has no such limit", Remedy: "remove it"})
		}
	}
	return gaps
}

// pidsGaps is a limit of processes that no kubelet enforces, or only a higher one.
func pidsGaps(spec *sandbox.Spec, s *kubekeys.Settings) []sandbox.Gap {
	asked := spec.Limits.Pids
	if asked == 0 || s.PodPidsLimit > 0 && int64(s.PodPidsLimit) <= asked {
		return nil
	}
	return []sandbox.Gap{{Field: "docker.pidsLimit", Reason: "only the kubelet limits the processes of a pod, for all pods of a node alike",
		Remedy: fmt.Sprintf("set podPidsLimit of the kubelets to %d or less and say so in kubernetes.podPidsLimit, or remove docker.pidsLimit", asked)}}
}

func userGaps(spec *sandbox.Spec) []sandbox.Gap {
	user, err := accountOf(spec.User)
	if err == nil && user.uid > 0 && user.gid > 0 {
		return nil
	}
	return []sandbox.Gap{{Field: "docker.user", Reason: fmt.Sprintf("%q is root, or no number: pods of sandboxes run as another user", spec.User), Remedy: "set docker.user to 1000:1000"}}
}
