package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

// claimsVariable says to a process that a test starts that agent-sandbox runs.
const claimsVariable = "ATOLL_TEST_KUBE_CLAIMS"

// agentSandboxSettings are those of the test cluster with agent-sandbox as the provider.
func agentSandboxSettings(t *testing.T) *kubekeys.Settings {
	t.Helper()
	s := clusterSettings(t)
	s.Provider = kubekeys.ProviderAgentSandbox
	return s
}

// keep has a pool of spec with that size until the test ends.
func keep(t *testing.T, r *Runtime, spec *sandbox.Spec, size int) sandbox.PoolCount {
	t.Helper()
	counts, err := r.KeepPools(t.Context(), []sandbox.KeptPool{{Spec: spec, Size: size}})
	if err != nil {
		t.Fatalf("%v (%s)", err, errhint.Of(err))
	}
	return counts[0]
}

// awaitPool waits until a pool has that many pods ready.
func awaitPool(t *testing.T, r *Runtime, spec *sandbox.Spec, size int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(pollInterval) {
		count := keep(t, r, spec, size)
		if count.Ready == size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("of %d: %+v", size, count)
		}
	}
}

// dropPools removes the pools of a runtime when the test ends, and waits for their pods.
func dropPools(t *testing.T, r *Runtime) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if _, err := r.KeepPools(ctx, nil); err != nil {
			t.Error(err)
		}
		for c, _ := r.cluster(); ; {
			left, err := list[corev1.Pod](ctx, c, pods, metav1.ListOptions{LabelSelector: r.selectAll() + ",!" + labelSandbox})
			if err != nil || len(left) == 0 {
				_ = r.Close()
				return
			}
			if pause(ctx, pollInterval) != nil {
				t.Errorf("%d pods are left", len(left))
				return
			}
		}
	})
}

// objectsLeft names what there is of an installation besides pools.
func objectsLeft(t *testing.T, r *Runtime) (names []string) {
	t.Helper()
	c, err := r.cluster()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []resourceKind{leases, sandboxClaims, pods} {
		found, err := list[metav1.PartialObjectMetadata](t.Context(), c, kind, metav1.ListOptions{LabelSelector: r.selectAll() + "," + labelSandbox})
		if err != nil {
			t.Fatal(err)
		}
		for n := range found {
			names = append(names, kind.Resource+"/"+found[n].Name)
		}
	}
	return names
}

// TestAgentSandboxMissing: without its definitions nothing is made, and what is missing is
// named; without its controller a claim fails soon, and nothing is left.
func TestAgentSandboxMissing(t *testing.T) {
	s := agentSandboxSettings(t)
	cluster, spec := clustertest.Shared(t), smallSpec("one")
	cluster.ReserveAgentSandbox(t)
	r := testRuntime(t, s)
	for _, gap := range append(r.Check(t.Context(), spec), sandbox.Gap{}) {
		if gap.Field == "backend" && strings.Contains(gap.Reason, "sandboxclaims.extensions.agents.x-k8s.io") && strings.Contains(gap.Remedy, "extensions.yaml") {
			break
		} else if gap.Field == "" {
			t.Errorf("the definitions are no gap: %+v", r.Check(t.Context(), spec))
		}
	}
	if _, err := r.Create(t.Context(), spec); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("made without definitions: %v", err)
	}
	cluster.InstallAgentSandbox(t)
	if found := r.Check(t.Context(), spec); len(found) > 0 {
		t.Errorf("with definitions: %+v", found)
	}
	inst, err := r.Create(t.Context(), spec) // no pool has its pods
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	t.Run("a claim", func(t *testing.T) { t.Parallel(); claimWithoutController(t, s) })
	t.Run("doctor", func(t *testing.T) {
		t.Parallel()
		wantFinding(t, examined(t, s, ""), sandbox.Finding{Name: "pod", Level: sandbox.FindingFailed, Detail: "the controller of agent-sandbox says nothing", Remedy: "--extensions"})
		nothingLeft(t, testRuntime(t, s))
	})
}

func claimWithoutController(t *testing.T, s *kubekeys.Settings) {
	t.Helper()
	r, spec := testRuntime(t, s), smallSpec("one")
	keep(t, r, spec, 1)
	dropPools(t, r)
	began := time.Now()
	_, err := r.Create(t.Context(), spec)
	if took := time.Since(began); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(errhint.Of(err), "--extensions") || took > 20*time.Second {
		t.Errorf("without a controller, after %v: %v (%s)", took, err, errhint.Of(err))
	}
	if left := objectsLeft(t, r); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// nothingLeft checks that there is nothing of an installation, nor a pool.
func nothingLeft(t *testing.T, r *Runtime) {
	t.Helper()
	left := objectsLeft(t, r)
	for _, kind := range []resourceKind{sandboxWarmPools, sandboxTemplates} {
		pools, err := list[metav1.PartialObjectMetadata](t.Context(), r.known, kind, metav1.ListOptions{LabelSelector: r.selectAll()})
		if err != nil {
			t.Fatal(err)
		}
		for n := range pools {
			left = append(left, kind.Resource+"/"+pools[n].Name)
		}
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAgentSandbox: pods of sandboxes come out of pools that agent-sandbox's controller
// keeps.
func TestAgentSandbox(t *testing.T) {
	s := agentSandboxSettings(t)
	clustertest.Shared(t).RunAgentSandbox(t)
	t.Run("taken out of a pool", func(t *testing.T) { takenOut(t, s) })
	t.Run("doctor", func(t *testing.T) {
		wantFinding(t, examined(t, s, ""), sandbox.Finding{Name: "pod", Level: sandbox.FindingOK, Detail: "by a SandboxClaim"})
		nothingLeft(t, testRuntime(t, s))
	})
	t.Run("pod fails", func(t *testing.T) { podFails(t, s) })
	t.Run("pod is deleted", func(t *testing.T) { podDeleted(t, s) })
	t.Run("races", func(t *testing.T) { raceForPods(t, s) })
}

// keepingRuntime has a pool for every sandbox that it makes, in which none waits: the
// controller makes the pod of each claim.
type keepingRuntime struct{ *Runtime }

func (r keepingRuntime) Create(ctx context.Context, spec *sandbox.Spec) (sandbox.Instance, error) {
	if sandbox.Unpoolable(shapedSpec(spec)) == "" {
		if _, err := r.KeepPools(ctx, []sandbox.KeptPool{{Spec: spec, Size: 0}}); err != nil {
			return nil, err
		}
	}
	made, err := r.Runtime.Create(ctx, spec)
	if err == nil && sandbox.Unpoolable(shapedSpec(spec)) == "" && made.(*Instance).current().Annotations[noteClaim] == "" {
		return nil, errors.New("its pod came by no claim")
	}
	return made, err
}

// TestAgentSandboxSuite: the cases of pools of every runtime hold for sandboxes whose pods
// come by claims.
func TestAgentSandboxSuite(t *testing.T) {
	s := agentSandboxSettings(t)
	if os.Getenv(claimsVariable) == "" { // not in a process that a case starts
		clustertest.Shared(t).RunAgentSandbox(t)
		t.Setenv(claimsVariable, "1")
	}
	sandboxtest.Run(t, sandboxtest.Subject{
		Open: func(t *testing.T, stateDir string) sandbox.Runtime {
			t.Helper()
			r, err := New(Options{Settings: *s, Installation: stateDir})
			if err != nil {
				t.Fatal(err)
			}
			dropPools(t, r)
			return keepingRuntime{r}
		},
		Image: testImage, Workdir: "/workspace", Walls: true, Copies: true, Parallel: true, Groups: []string{"pool"},
	})
}

func takenOut(t *testing.T, s *kubekeys.Settings) {
	r, spec := testRuntime(t, s), smallSpec("Taken_Out")
	spec.MaxAgeSec = 24 * 60 * 60
	dropPools(t, r)
	awaitPool(t, r, spec, 1)
	waiting := podsOf(t, r)
	began := time.Now()
	made, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("%v (%s)", err, errhint.Of(err))
	}
	t.Logf("made in %v", time.Since(began))
	inst := made.(*Instance)
	if len(waiting) != 1 || inst.Member() != waiting[0] {
		t.Errorf("pod %q, %v waited", inst.Member(), waiting)
	}
	sameAsOurs(t, r, spec, inst.currentPod())
	if err := inst.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	defer m.Close()
	var out bytes.Buffer
	res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", "hostname; id -u; " + unreachable(r)}, Dir: "/", Stdout: &out, Stderr: &out, Timeout: time.Minute})
	if err != nil || res.ExitCode != 0 || !strings.HasPrefix(out.String(), "sandbox\n1000\n") || !strings.Contains(out.String(), "no way to ") {
		t.Errorf("%+v, %v: %s", res, err, out.String())
	}
	if err := m.Identify(t.Context(), "another-claim", "atoll-another"); !errors.Is(err, machine.ErrTaken) {
		t.Errorf("a second name: %v", err)
	}
	if seen, err := r.List(t.Context()); len(seen) != 1 || seen[0].State != sandbox.StateRunning || err != nil {
		t.Errorf("%+v, %v", seen, err)
	}
	endsByItself(t, r, inst)
	awaitPool(t, r, spec, 2) // it is filled again, and larger
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := objectsLeft(t, r); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, name := range podsOf(t, r) {
		if name == inst.Member() {
			t.Errorf("pod %s is in the pool again", name)
		}
	}
}

// sameAsOurs compares a pod of a pool with the one that is made without agent-sandbox.
func sameAsOurs(t *testing.T, r *Runtime, spec *sandbox.Spec, got *corev1.Pod) {
	t.Helper()
	shaped := shapedSpec(spec)
	shaped.Env, shaped.Kind = nil, sandbox.KindPool
	want, err := template(shaped, &r.settings)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := r.cluster()
	want.ObjectMeta = metav1.ObjectMeta{GenerateName: namePrefix, Namespace: c.namespace}
	if err := c.create(t.Context(), pods, want); err != nil { // with the server's defaults
		t.Fatal(err)
	}
	if err := c.remove(t.Context(), pods, want.Name, want.UID, 0); err != nil {
		t.Error(err)
	}
	mine, theirs := want.Spec, got.Spec
	mine.NodeName, theirs.NodeName = "", ""
	if a, b := fmt.Sprintf("%+v", mine.String()), fmt.Sprintf("%+v", theirs.String()); a != b {
		t.Errorf("ours is\n%s\nthe controller's\n%s", a, b)
	}
}

// endsByItself checks that the claim of a sandbox with an age limit ends without a gateway.
func endsByItself(t *testing.T, r *Runtime, i *Instance) {
	t.Helper()
	c, _ := r.cluster()
	var claim struct {
		Spec struct {
			Lifecycle struct {
				ShutdownPolicy string      `json:"shutdownPolicy"`
				ShutdownTime   metav1.Time `json:"shutdownTime"`
			} `json:"lifecycle"`
		} `json:"spec"`
	}
	if err := c.get(t.Context(), sandboxClaims, i.current().Annotations[noteClaim], &claim); err != nil {
		t.Fatal(err)
	}
	if life := claim.Spec.Lifecycle; life.ShutdownPolicy != "Delete" || time.Until(life.ShutdownTime.Time) < 24*time.Hour || time.Until(life.ShutdownTime.Time) > 25*time.Hour {
		t.Errorf("%+v", life)
	}
}

// podFails: a sandbox whose pod has failed is dead, and is removed whole.
func podFails(t *testing.T, s *kubekeys.Settings) {
	r, spec := testRuntime(t, s), smallSpec("fails")
	dropPools(t, r)
	awaitPool(t, r, spec, 1)
	inst := mustStart(t, r, spec)
	c, _ := r.cluster()
	if err := c.patch(t.Context(), pods, inst.currentPod().Name, map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}}); err != nil {
		t.Fatal(err)
	}
	awaitState(t, inst, sandbox.StateDead)
	if phase := inst.currentPod().Status.Phase; phase != corev1.PodFailed {
		t.Errorf("the pod is %s", phase)
	}
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := objectsLeft(t, r); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// podDeleted: the controller makes another pod for a claim whose pod was deleted, and that
// one is not the sandbox's.
func podDeleted(t *testing.T, s *kubekeys.Settings) {
	r, spec := testRuntime(t, s), smallSpec("deleted")
	dropPools(t, r)
	awaitPool(t, r, spec, 1)
	inst := mustStart(t, r, spec)
	c, _ := r.cluster()
	first := inst.currentPod()
	if err := c.remove(t.Context(), pods, first.Name, first.UID, 1); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pollInterval) {
		again := new(corev1.Pod)
		if err := c.get(t.Context(), pods, first.Name, again); err == nil && again.UID != first.UID {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the controller made no other pod: this test tries nothing")
		}
	}
	awaitState(t, inst, sandbox.StateDead)
	if _, err := inst.Dial(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("a wire to the other pod: %v", err)
	}
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := objectsLeft(t, r); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func mustStart(t *testing.T, r *Runtime, spec *sandbox.Spec) *Instance {
	t.Helper()
	inst, err := r.Create(t.Context(), spec)
	if err == nil {
		err = inst.Start(t.Context())
	}
	if err != nil {
		t.Fatalf("%v (%s)", err, errhint.Of(err))
	}
	removeAtEnd(t, inst)
	return inst.(*Instance)
}

func awaitState(t *testing.T, i *Instance, want sandbox.State) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pollInterval) {
		state, err := i.State(t.Context())
		if state == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, want %s: %v", state, want, err)
		}
	}
}

// raceForPods has two gateways claim more pods at once than wait, and never one twice.
func raceForPods(t *testing.T, s *kubekeys.Settings) {
	const atOnce, waiting = 10, 5
	gateways := [2]*Runtime{testRuntime(t, s), testRuntime(t, s)}
	dropPools(t, gateways[0])
	var mu sync.Mutex
	used, warm := map[string]string{}, 0
	for round := range need.Rounds(1, 5) {
		awaitPool(t, gateways[0], smallSpec("any"), waiting)
		var all sync.WaitGroup
		for n := range atOnce {
			all.Go(func() {
				name := fmt.Sprintf("race-%d-%d", round, n)
				inst, err := gateways[n%2].Create(t.Context(), smallSpec(name))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				pod := inst.(*Instance).currentPod()
				mu.Lock()
				if other := used[string(pod.UID)]; other != "" {
					t.Errorf("%s and %s have pod %s", other, name, pod.Name)
				}
				if used[string(pod.UID)] = name; inst.(*Instance).Member() != "" {
					warm++
				}
				mu.Unlock()
				if err := inst.Remove(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		all.Wait()
	}
	t.Logf("%d claims, %d of them of a pod that waited", len(used), warm)
	if warm == 0 {
		t.Error("no pod had waited")
	}
	if left := objectsLeft(t, gateways[0]); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
