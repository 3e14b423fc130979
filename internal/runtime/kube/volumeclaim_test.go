package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// TestVolumes: workspaces on claims.
func TestVolumes(t *testing.T) {
	c := clustertest.Shared(t)
	s := clusterSettings(t)
	s.WorkspaceVolume = &kubekeys.Volume{Size: "1Gi"}
	for name, try := range map[string]func(*testing.T, *clustertest.Cluster, *Runtime){
		"outlives the pod": volumeOutlivesThePod, "cannot be made": volumeCannotBeMade, "has one pod": volumeHasOnePod,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, c, testRuntime(t, s))
		})
	}
}

// provideVolume makes a volume for the claim of a sandbox.
func provideVolume(t *testing.T, c *clustertest.Cluster, r *Runtime, name string) {
	t.Helper()
	claim := r.leaseName(name)
	c.Volume(t, clustertest.Volume{Name: r.settings.Namespace + "-" + claim, Namespace: r.settings.Namespace, Claim: claim})
}

// claimsOf are the claims of a runtime.
func claimsOf(t *testing.T, r *Runtime) []corev1.PersistentVolumeClaim {
	t.Helper()
	found, err := list[corev1.PersistentVolumeClaim](t.Context(), r.known, claims, metav1.ListOptions{LabelSelector: r.selectAll()})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// volumeOutlivesThePod: a workspace on a claim is filled once; what changed in it is there
// in the next pod of the name, whatever became of the one before, and the claim goes when the
// private copy was removed for good.
func volumeOutlivesThePod(t *testing.T, c *clustertest.Cluster, r *Runtime) {
	t.Helper()
	spec, home := workspaceSpec(t, "kept")
	provideVolume(t, c, r, spec.Name)
	writeFile(t, filepath.Join(home, "file"), "seed\n")
	inst, m := started(t, r, spec)
	if text := shell(t, m, "cat /workspace/file; echo changed >/workspace/file; mkdir /workspace/dir"); text != "seed\n" {
		t.Errorf("it began with %q", text)
	}
	evict(t, c, inst) // nothing is brought home: nothing would be lost
	awaitGone(t, r)
	removedWhole(t, r, inst)
	inst, m = started(t, r, spec)
	if text := shell(t, m, "cat /workspace/file; echo again >>/workspace/file; ls /workspace"); text != "changed\ndir\nfile\n" {
		t.Errorf("after the eviction: %q", text)
	}
	removedWhole(t, r, inst) // in order: home has it
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "changed\nagain\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
	if names, err := r.Unrecorded(t.Context()); len(names) > 0 || err != nil || len(claimsOf(t, r)) != 1 {
		t.Errorf("of a copy that is there: %v, %v, claims %v", names, err, claimsOf(t, r))
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	r.settings.WorkspaceVolume = nil // removed from the configuration
	if names, err := r.Unrecorded(t.Context()); len(names) != 1 || names[0] != spec.Name || err != nil {
		t.Errorf("of a copy that was removed: %v, %v", names, err)
	}
	if err := r.Sweep(t.Context(), spec.Name); err != nil || len(claimsOf(t, r)) > 0 {
		t.Errorf("swept: %v, claims %v", err, claimsOf(t, r))
	}
}

// volumeCannotBeMade: a claim without a volume is an error with the cluster's reason in 20
// seconds, and nothing is left.
func volumeCannotBeMade(t *testing.T, _ *clustertest.Cluster, r *Runtime) {
	t.Helper()
	r.settings.WorkspaceVolume = &kubekeys.Volume{Size: "1Gi", StorageClass: "missing"}
	r.settings.StartTimeoutSec = kubekeys.Default().StartTimeoutSec
	spec, _ := workspaceSpec(t, "unbound")
	begin := time.Now()
	_, err := r.Create(t.Context(), spec)
	if took := time.Since(begin); took > 22*time.Second {
		t.Errorf("it took %v", took)
	}
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), `"missing" not found`) || !strings.Contains(errhint.Of(err), "storageClass") {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil || len(podsOf(t, r)) > 0 || len(claimsOf(t, r)) > 0 {
		t.Errorf("left: %v, %v, pods %v, claims %v", left, err, podsOf(t, r), claimsOf(t, r))
	}
}

// volumeHasOnePod: while an earlier pod may still have the claim, none other is made, also
// if its Lease was lost.
func volumeHasOnePod(t *testing.T, c *clustertest.Cluster, r *Runtime) {
	t.Helper()
	spec, _ := workspaceSpec(t, "one")
	provideVolume(t, c, r, spec.Name)
	inst, _ := started(t, r, spec)
	pod := inst.currentPod().Name
	finalizers := func(names string) {
		c.Kubectl(t, "", "-n", r.settings.Namespace, "patch", "pod", pod, "--type=merge", "-p", `{"metadata":{"finalizers":[`+names+`]}}`)
	}
	finalizers(`"atoll.dev/test"`)
	c.Kubectl(t, "", "-n", r.settings.Namespace, "delete", "lease", r.leaseName(spec.Name))
	r.settings.StartTimeoutSec = 5
	if _, err := r.Create(t.Context(), spec); !errors.Is(err, sandbox.ErrBusy) || !strings.Contains(err.Error(), pod) || errhint.Of(err) == "" {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("the attempt left %v, %v", left, err)
	}
	finalizers("")
	if len(claimsOf(t, r)) != 1 {
		t.Error("the claim went with the attempt")
	}
}

// TestVolumeOfPods: the pod of a workspace on a claim has it in the place of a directory of
// the node, for the group of the sandbox's user; what ends with its sandbox has none.
func TestVolumeOfPods(t *testing.T) {
	s := testSettings()
	s.WorkspaceVolume = &kubekeys.Volume{Size: "1Gi"}
	spec := testSpec()
	pod, err := template(spec, s)
	if err != nil || !hasVolume(pod) || *pod.Spec.SecurityContext.FSGroup != defaultUser {
		t.Errorf("%+v, %v", pod, err)
	}
	spec.Temporary = true
	if pod, err = template(spec, s); err != nil || hasVolume(pod) || pod.Spec.SecurityContext.FSGroup != nil {
		t.Errorf("temporary: %+v, %v", pod, err)
	}
}
