package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// smallSpec is a sandbox without a workspace, of which a node holds many.
func smallSpec(name string) *sandbox.Spec {
	spec := testSpec()
	spec.Name, spec.Image, spec.Mounts, spec.Limits = name, testImage, nil, sandbox.Limits{Memory: 64 << 20}
	return spec
}

// underWay starts a command that says what it is, waits, and ends; its result comes later.
func underWay(t *testing.T, m *machine.Machine, wait time.Duration) func() {
	t.Helper()
	type ended struct {
		out string
		res *machine.Result
		err error
	}
	done, began := make(chan ended, 1), make(chan struct{})
	go func() {
		out := &firstWrite{began: began}
		res, err := m.Exec(context.WithoutCancel(t.Context()), &machine.Command{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("echo $$; sleep %d; echo $$", int(wait.Seconds()))}, Stdout: out, Timeout: 3 * time.Minute})
		done <- ended{out.text.String(), res, err}
	}()
	select {
	case <-began:
	case e := <-done:
		t.Fatalf("%v: %q", e.err, e.out)
	}
	return func() {
		t.Helper()
		e := <-done
		lines := strings.Fields(e.out)
		if e.err != nil || e.res.ExitCode != 0 || len(lines) != 2 || lines[0] != lines[1] {
			t.Errorf("the command that was under way: %v, %q", e.err, e.out)
		}
	}
}

// firstWrite tells when the first bytes came.
type firstWrite struct {
	once  sync.Once
	began chan struct{}
	text  strings.Builder
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.once.Do(func() { close(w.began) })
	return w.text.Write(p)
}

// answers waits until the guest does, and fails if it is called broken.
func answers(t *testing.T, m *machine.Machine, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(pollInterval) {
		err := m.Ping(t.Context())
		if err == nil {
			return
		}
		if errors.Is(err, machine.ErrBroken) || time.Now().After(deadline) {
			t.Fatalf("the guest does not answer within %v: %v", within, err)
		}
	}
}

const (
	// wires are open when the API server is restarted, to so many sandboxes each.
	wires       = 100
	wiresOfEach = 10
	// backWithin is how long they may take to be there again. On two processors that nothing
	// else uses it is 5 to 11 s.
	backWithin = 30 * time.Second
)

// TestAPIServerRestarted: an API server that is killed and away for ten seconds costs no
// command and no sandbox; a hundred wires are back soon after its return, and are not
// dialled all at once.
func TestAPIServerRestarted(t *testing.T) {
	c := clustertest.Alone(t, 2)
	s := clusterSettings(t)
	dials := newDialLimit(dialsPerSecond) // of one process
	var machines []*machine.Machine
	for n := range wires / wiresOfEach {
		r := testRuntime(t, s)
		inst, first := started(t, r, smallSpec(fmt.Sprintf("wire-%d", n)))
		r.dials = dials
		machines = append(machines, first)
		for range wiresOfEach - 1 {
			other := testRuntime(t, s)
			other.dials = dials
			again, err := other.Open(t.Context(), inst.name)
			if err != nil {
				t.Fatal(err)
			}
			m := machine.New(again.Dial, nil)
			t.Cleanup(func() { _ = m.Close() })
			machines = append(machines, m)
		}
	}
	for _, m := range machines {
		answers(t, m, time.Minute)
	}
	var results []func()
	for n := 0; n < len(machines); n += wiresOfEach { // one of each sandbox
		results = append(results, underWay(t, machines[n], 25*time.Second))
	}
	taken, begin := dials.count.Load(), time.Now()
	c.Kill(t, "apiserver")
	if _, err := testRuntime(t, s).Create(t.Context(), smallSpec("meanwhile")); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a sandbox is made without an API server: %v", err)
	}
	time.Sleep(10*time.Second - time.Since(begin))
	c.Start(t, "apiserver")
	back := time.Now()
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() { answers(t, m, time.Minute) })
	}
	all.Wait()
	took, dialled := time.Since(back), dials.count.Load()-taken
	t.Logf("%d wires were back %v after the API server, with %d dials in %v", len(machines), took.Round(time.Millisecond), dialled, time.Since(begin).Round(time.Millisecond))
	if took > backWithin {
		t.Errorf("they were back after %v", took)
	}
	if most := int64((time.Since(begin).Seconds() + 1) * dialsPerSecond * 1.2); dialled > most {
		t.Errorf("%d dials are a storm: at most %d", dialled, most)
	}
	for _, result := range results {
		result()
	}
}

// TestProgramsRestarted: what runs the containers and what keeps the objects may be restarted
// or killed; commands go on and their results are fetched, and the pod is the same.
func TestProgramsRestarted(t *testing.T) {
	c := clustertest.Alone(t, 2)
	r := testRuntime(t, clusterSettings(t))
	inst, m := started(t, r, smallSpec("patient"))
	pod := inst.currentPod()
	node := strings.TrimPrefix(pod.Spec.NodeName, "node")
	for program, away := range map[string]time.Duration{"containerd" + node: time.Second, "etcd": time.Second} {
		t.Run(program, func(t *testing.T) {
			result := underWay(t, m, 8*time.Second)
			c.Kill(t, program)
			time.Sleep(away)
			c.Start(t, program)
			answers(t, m, time.Minute)
			result()
			if state, err := inst.State(t.Context()); err != nil || state != sandbox.StateRunning || inst.currentPod().UID != pod.UID {
				t.Errorf("%v, %v, pod %v", state, err, inst.currentPod())
			}
			if left, err := r.List(t.Context()); err != nil || len(left) != 1 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}

// dead waits until the sandbox is, and returns why a dial fails.
func dead(t *testing.T, i *Instance, within time.Duration) error {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(pollInterval) {
		state, err := i.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if state == sandbox.StateDead {
			conn, err := i.Dial(t.Context())
			if err != nil {
				return err
			}
			_ = conn.Close() // over a session that has not noticed yet
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is %s after %v", state, within)
		}
	}
}

// removedWhole removes a sandbox, after which nothing of it is there.
func removedWhole(t *testing.T, r *Runtime, i *Instance) {
	t.Helper()
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	if pods := podsOf(t, r); len(pods) > 0 {
		t.Errorf("left: pods %v", pods)
	}
}

// evict asks the cluster to take the pod of a sandbox away.
func evict(t *testing.T, c *clustertest.Cluster, i *Instance) {
	t.Helper()
	pod, namespace := i.currentPod().Name, i.runtime.settings.Namespace
	c.Kubectl(t, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod, namespace),
		"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod), "-f", "-")
}

// workspaceSpec is a small sandbox with a private copy of an empty directory.
func workspaceSpec(t *testing.T, name string) (spec *sandbox.Spec, home string) {
	t.Helper()
	spec, home = smallSpec(name), filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{{Source: home, Target: "/workspace", Kind: sandbox.MountWorkspace, Enclosed: true}}
	return spec, home
}

// shell runs a script in a sandbox.
func shell(t *testing.T, m *machine.Machine, script string) string {
	t.Helper()
	var out strings.Builder
	res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out, Timeout: time.Minute})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%s: %v, %+v: %s", script, err, res, out.String())
	}
	return out.String()
}

// TestEvicted: a pod that the cluster takes away is a sandbox that is dead, with the
// reason; the command in it ends with an error that says so, what it changed is at home, and
// nothing is left after the removal.
func TestEvicted(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	spec, home := workspaceSpec(t, "evicted")
	inst, m := started(t, r, spec)
	shell(t, m, "echo changed >/workspace/file")
	ended := make(chan error, 1)
	go func() {
		_, err := m.Exec(context.WithoutCancel(t.Context()), &machine.Command{Argv: []string{"sleep", "120"}})
		ended <- err
	}()
	begin := time.Now()
	evict(t, c, inst)
	select {
	case err := <-ended:
		if !errors.Is(err, machine.ErrTerminated) {
			t.Errorf("the command in it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the command in it never ends")
	}
	if err := dead(t, inst, time.Minute); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("a dial ends with %v", err)
	}
	if err := inst.Start(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("it is started again without its files: %v", err)
	}
	awaitGone(t, r)
	t.Logf("the pod was gone %v after its eviction", time.Since(begin).Round(time.Millisecond))
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "changed\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
	left, err := r.List(t.Context())
	if err != nil || len(left) != 1 || left[0].State != sandbox.StateDead || time.Since(left[0].SavedAt) > time.Minute || !strings.Contains(left[0].Problem, "EvictionByEvictionAPI") {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := inst.Dial(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) || !strings.Contains(err.Error(), "was brought home") {
		t.Errorf("a dial ends with %v", err)
	}
	removedWhole(t, r, inst)
}

// awaitGone waits until the cluster has no pods of the runtime.
func awaitGone(t *testing.T, r *Runtime) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(podsOf(t, r)) > 0; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("pods %v are not gone", podsOf(t, r))
		}
	}
}

// TestRemovedWhileEvicted: a removal at the same time waits until the changes are home.
func TestRemovedWhileEvicted(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	spec, home := workspaceSpec(t, "removed-meanwhile")
	inst, m := started(t, r, spec)
	shell(t, m, "echo changed >/workspace/file")
	evict(t, c, inst)
	removedWhole(t, r, inst)
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "changed\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
}

// TestNotHomeInTime: of a pod whose time is too short the list says what is lost, and home
// is as it was.
func TestNotHomeInTime(t *testing.T) {
	c := clustertest.Shared(t)
	s := clusterSettings(t)
	s.TerminationGraceSec = 3
	r := testRuntime(t, s)
	spec, home := workspaceSpec(t, "too-large")
	inst, m := started(t, r, spec)
	shell(t, m, "truncate -s 50G /workspace/large") // takes minutes to fetch, and no room
	evict(t, c, inst)
	awaitGone(t, r)
	left, err := r.List(t.Context())
	for deadline := time.Now().Add(time.Minute); err == nil && left[0].Problem == "" && time.Now().Before(deadline); time.Sleep(pollInterval) {
		left, err = r.List(t.Context())
	}
	if err != nil || !left[0].SavedAt.IsZero() || !strings.Contains(left[0].Problem, "since it was made is lost") {
		t.Errorf("%+v, %v", left, err)
	}
	if files, err := os.ReadDir(home); len(files) > 0 || err != nil {
		t.Errorf("at home: %v, %v", files, err)
	}
	removedWhole(t, r, inst)
}

// TestDiskOverItsLimit: a workspace over its size ends the pod, and the reason is the
// kubelet's own.
func TestDiskOverItsLimit(t *testing.T) {
	s := clusterSettings(t)
	s.WorkspaceSize = "8Mi"
	r := testRuntime(t, s)
	spec := smallSpec("full")
	spec.Mounts = []sandbox.Mount{{Source: t.TempDir(), Target: "/workspace", Kind: sandbox.MountWorkspace, Enclosed: true}}
	inst, m := started(t, r, spec)
	_, _ = m.Exec(t.Context(), &machine.Command{Argv: []string{"dd", "if=/dev/zero", "of=/workspace/large", "bs=1M", "count=64"}, Timeout: time.Minute})
	err := dead(t, inst, 3*time.Minute)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(err.Error(), "exceeds the limit") && time.Now().Before(deadline); time.Sleep(pollInterval) {
		_, err = inst.Dial(t.Context()) // the kubelet says why after the containers have ended
	}
	if !errors.Is(err, sandbox.ErrNotRunning) || !strings.Contains(err.Error(), "exceeds the limit") {
		t.Errorf("a dial ends with %v", err)
	}
	removedWhole(t, r, inst)
}

// TestDeletionIsStuck: a pod that the cluster does not let go keeps its sandbox in the list
// and its name taken, until it is gone.
func TestDeletionIsStuck(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	inst, _ := started(t, r, smallSpec("stuck"))
	patch := func(finalizers string) {
		c.Kubectl(t, "", "-n", r.settings.Namespace, "patch", "pod", inst.currentPod().Name, "--type=merge", "-p", `{"metadata":{"finalizers":[`+finalizers+`]}}`)
	}
	patch(`"atoll.dev/test"`)
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := inst.Remove(limited); err == nil || !strings.Contains(err.Error(), "is not gone") {
		t.Errorf("it is removed: %v", err)
	}
	if left, err := r.List(t.Context()); len(left) != 1 || err != nil {
		t.Errorf("it is not in the list: %v, %v", left, err)
	}
	if _, err := r.Create(t.Context(), smallSpec("stuck")); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("its name is free: %v", err)
	}
	patch("")
	removedWhole(t, r, inst)
}
