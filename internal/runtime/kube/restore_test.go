package kube

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

// usableWithin is how long a sandbox may be unusable after etcd was restored: kubelets find
// out first which pods they are to run.
const usableWithin = time.Minute

// testGateway is the gateway of a state directory that was started as the nth.
type testGateway struct {
	*sandbox.Manager

	runtime *Runtime
}

func gatewayOf(t *testing.T, s *kubekeys.Settings, state string, nth uint64) *testGateway {
	t.Helper()
	r, err := New(Options{Settings: *s, Installation: t.Name(), Owner: true, Starts: nth})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	m := sandbox.NewManager(sandboxtest.ManagerOptions(t, state, r))
	t.Cleanup(m.Close)
	return &testGateway{m, r}
}

// does runs a script in the sandbox of spec, which must be usable soon.
func (g *testGateway) does(t *testing.T, spec *sandbox.Spec, script string) string {
	t.Helper()
	for deadline := time.Now().Add(usableWithin); ; time.Sleep(time.Second) {
		h, err := g.Ensure(t.Context(), spec)
		if err == nil {
			out := shell(t, h.Machine, script)
			h.Release()
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not usable after %v: %v", spec.Name, usableWithin, err)
		}
	}
}

// claims makes the sandbox of spec out of one that waits.
func (g *testGateway) claims(t *testing.T, spec *sandbox.Spec) {
	t.Helper()
	claim, err := g.Reserve(t.Context(), spec)
	if claim == nil || err != nil {
		t.Fatalf("nothing waits: %v", err)
	}
	defer claim.Release(t.Context())
	home := spec.Mounts[0].Source
	if err := errors.Join(os.Remove(home), os.Rename(claim.Workspace(), home)); err != nil {
		t.Fatal(err)
	}
	spec.Claim = claim
	g.does(t, spec, "echo claimed >/workspace/file")
	spec.Claim = nil
}

// lease reads the Lease of a name.
func (g *testGateway) lease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	c, err := g.runtime.cluster()
	if err != nil {
		t.Fatal(err)
	}
	lease := new(coordinationv1.Lease)
	if err := c.get(t.Context(), leases, g.runtime.leaseName(name), lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestEtcdRestored: after etcd was restored from a snapshot every name is usable: what was
// there and is, goes on; what was removed does not come back with an empty workspace; what
// was made is made again. No name has two pods, no epoch is given twice, and nothing is left.
func TestEtcdRestored(t *testing.T) {
	c := clustertest.Alone(t, 2)
	s, state := clusterSettings(t), t.TempDir()
	specs, homes := map[string]*sandbox.Spec{}, map[string]string{}
	for _, name := range []string{"kept", "removed", "claimed", "made"} {
		specs[name], homes[name] = workspaceSpec(t, name)
		specs[name].Backend, specs[name].ScopeKey = "test", "agent:main:"+name
	}
	first := gatewayOf(t, s, state, 1)
	first.does(t, specs["kept"], "echo before >/workspace/file")
	first.does(t, specs["removed"], "echo home >/workspace/file")
	member := filepath.Join(t.TempDir(), "member")
	if err := os.Mkdir(member, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.MakePooled(t.Context(), sandbox.PoolSpec(specs["claimed"], "member", member)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	c.Snapshot(t)

	second := gatewayOf(t, s, state, 2)
	second.does(t, specs["kept"], "echo after >>/workspace/file")
	second.claims(t, specs["claimed"])
	second.does(t, specs["made"], "echo made >/workspace/file")
	if err := second.Remove(t.Context(), "removed", nil); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	c.Restore(t)
	t.Logf("restored after %.1f s", time.Since(begin).Seconds())

	second.does(t, specs["claimed"], "true") // it is the gateway still
	third := gatewayOf(t, s, state, 3)
	third.does(t, specs["kept"], "true") // whose Lease has the epoch of the first
	if epoch := epochOf(third.lease(t, "kept")); epoch != 3 {
		t.Errorf("the third gateway has epoch %d", epoch)
	}
	succeeded(t, second, "kept")
	for name, want := range map[string]string{"kept": "before\nafter\n", "claimed": "claimed\n", "removed": "home\n", "made": ""} {
		if got := third.does(t, specs[name], "cat /workspace/file 2>/dev/null || :"); got != want {
			t.Errorf("%s has %q, not %q", name, got, want)
		}
	}
	t.Logf("usable %.1f s after the stop", time.Since(begin).Seconds())
	onePodEach(t, c, third.runtime)
	for name, want := range map[string]string{"kept": "before\nafter\n", "claimed": "claimed\n", "removed": "home\n"} {
		if err := third.Remove(t.Context(), name, nil); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(homes[name], "file")); string(text) != want || err != nil {
			t.Errorf("at home of %s: %q, %v", name, text, err)
		}
	}
	if err := third.Remove(t.Context(), "made", nil); err != nil {
		t.Error(err)
	}
	emptyCluster(t, c, third)
}

// succeeded fails if a gateway still reaches a sandbox that another has taken over.
func succeeded(t *testing.T, g *testGateway, name string) {
	t.Helper()
	inst := &Instance{runtime: g.runtime, name: name}
	if err := inst.read(t.Context()); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("the gateway before: %v", err)
	}
	if h, err := g.Attach(t.Context(), name); err == nil {
		defer h.Release()
		if err := h.Machine.Ping(t.Context()); err == nil {
			t.Error("the gateway before still has a wire")
		}
	}
}

// runningPods returns the UIDs of what the kubelets run in the namespace of a runtime.
func runningPods(t *testing.T, c *clustertest.Cluster, r *Runtime) (uids []string) {
	t.Helper()
	for _, node := range []string{"node1", "node2"} {
		var found corev1.PodList
		if err := json.Unmarshal([]byte(c.Kubectl(t, "", "get", "--raw", "/api/v1/nodes/"+node+"/proxy/runningpods/")), &found); err != nil {
			t.Fatal(err)
		}
		for n := range found.Items {
			if found.Items[n].Namespace == r.settings.Namespace {
				uids = append(uids, string(found.Items[n].UID))
			}
		}
	}
	return uids
}

// onePodEach waits until what runs on the nodes is what the API server has, and fails if a
// name has two pods.
func onePodEach(t *testing.T, c *clustertest.Cluster, r *Runtime) {
	t.Helper()
	for deadline := time.Now().Add(usableWithin); ; time.Sleep(time.Second) {
		known, names := map[string]bool{}, map[string]int{}
		connected, err := r.cluster()
		if err != nil {
			t.Fatal(err)
		}
		found, err := list[corev1.Pod](t.Context(), connected, pods, metav1.ListOptions{LabelSelector: r.selectAll()})
		if err != nil {
			t.Fatal(err)
		}
		for n := range found {
			known[string(found[n].UID)] = true
			if names[found[n].Labels[labelSandbox]]++; names[found[n].Labels[labelSandbox]] > 1 {
				t.Errorf("two pods of one name: %s and another", found[n].Name)
			}
		}
		unknown := 0
		for _, uid := range runningPods(t, c, r) {
			if !known[uid] {
				unknown++
			}
		}
		if unknown == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pods run that the API server does not have", unknown)
		}
	}
}

// emptyCluster fails unless the cluster and the registry have no sandbox any more.
func emptyCluster(t *testing.T, c *clustertest.Cluster, g *testGateway) {
	t.Helper()
	if done, err := g.Repair(t.Context()); len(done) > 0 || err != nil {
		t.Errorf("left: %v, %v", done, err)
	}
	if left, err := g.runtime.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	if left := podsOf(t, g.runtime); len(left) > 0 {
		t.Errorf("left: pods %v", left)
	}
	for deadline := time.Now().Add(usableWithin); len(runningPods(t, c, g.runtime)) > 0; time.Sleep(time.Second) {
		if time.Now().After(deadline) { // kubelets remove the containers of a pod that is gone a moment later
			t.Fatalf("left on the nodes: %v", runningPods(t, c, g.runtime))
		}
	}
}

// TestEpochIsNeverGivenTwice: a gateway writes its epoch again where the cluster has lost it,
// and the next one gets a higher one.
func TestEpochIsNeverGivenTwice(t *testing.T) {
	gateway := func(owner bool, starts uint64) *Runtime {
		r, err := New(Options{Settings: *testSettings(), Installation: "i", Owner: owner, Starts: starts})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	takes := func(r *Runtime, l *coordinationv1.Lease) uint64 {
		r.nextEpoch(l)
		r.keepEpoch(l)
		epoch, ok := r.heldEpoch(l)
		if !ok || epochOf(l) < epoch {
			t.Errorf("epoch %d is not in the Lease: %d", epoch, epochOf(l))
		}
		return epoch
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	first, second, third := gateway(true, 4), gateway(true, 5), gateway(true, 6)
	if epoch := takes(first, lease); epoch != 4 {
		t.Errorf("the first has epoch %d", epoch)
	}
	snapshot := lease.DeepCopy()
	if epoch := takes(second, lease); epoch != 5 {
		t.Errorf("the second has epoch %d", epoch)
	}
	if _, ok := second.heldEpoch(snapshot); ok {
		t.Error("an epoch that is lost is not written again")
	}
	if epoch := takes(second, snapshot.DeepCopy()); epoch != 5 {
		t.Errorf("the second has epoch %d after it was lost", epoch)
	}
	if epoch, _ := gateway(false, 5).heldEpoch(snapshot); epoch != 5 {
		t.Errorf("a process beside the gateway comes with %d", epoch)
	}
	if epoch := takes(third, snapshot); epoch != 6 {
		t.Errorf("the third has epoch %d", epoch)
	}
	if err := second.checkOwner(snapshot); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("the second after the third: %v", err)
	}
	earlier := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: "v"}, Spec: coordinationv1.LeaseSpec{LeaseTransitions: new(int32(9))}} // before starts were counted
	if epoch := takes(third, earlier); epoch != 10 {
		t.Errorf("epoch %d after 9", epoch)
	}
}

// TestContainerStartedAgain: a pod whose container is another than that of the Lease is not
// the sandbox's: nothing is fetched from it.
func TestContainerStartedAgain(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{notePhase: phaseRunning, noteContainer: "containerd://a"}}}
	pod := func(id string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{ContainerID: id}}}}
	}
	for id, want := range map[string]sandbox.State{"containerd://a": sandbox.StateRunning, "containerd://b": sandbox.StateDead, "": sandbox.StateDead} {
		if state := stateOf(lease, ownPod(lease, pod(id))); state != want {
			t.Errorf("with container %q it is %s", id, state)
		}
	}
	ended := pod("")
	ended.Status.Phase = corev1.PodFailed
	if ownPod(lease, ended) == nil {
		t.Error("why a pod has failed is lost")
	}
	delete(lease.Annotations, noteContainer) // of an earlier version
	if ownPod(lease, pod("containerd://b")) == nil {
		t.Error("a Lease without the note has no pod")
	}
}
