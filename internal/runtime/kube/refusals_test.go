package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// TestNoKubeconfig: an error says where one is looked for.
func TestNoKubeconfig(t *testing.T) {
	s := testSettings()
	s.Kubeconfig = t.TempDir() + "/nothing"
	r, err := New(Options{Settings: *s, Installation: "i"})
	if err != nil {
		t.Fatal(err)
	}
	gaps := r.Check(t.Context(), testSpec())
	if len(gaps) != 1 || !strings.Contains(gaps[0].Remedy, "kubernetes.kubeconfig") {
		t.Errorf("%+v", gaps)
	}
	if _, err := r.Create(t.Context(), testSpec()); !errors.Is(err, sandbox.ErrUnavailable) || errhint.Of(err) == "" {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
}

// TestClusterRefuses: what a cluster does not do is an error within 20 seconds, in its own
// words and with the remedy, and nothing is left.
func TestClusterRefuses(t *testing.T) {
	base := clusterSettings(t)
	for name, c := range map[string]struct {
		settings func(*kubekeys.Settings)
		spec     func(*sandbox.Spec)
		user     string // on whose behalf
		kind     error
		text     string
		hint     string
	}{
		"image":         {spec: func(s *sandbox.Spec) { s.Image = "nobody.invalid/none:1" }, kind: sandbox.ErrNoImage, text: "nobody.invalid/none:1", hint: "docker.image"},
		"guest":         {settings: func(s *kubekeys.Settings) { s.GuestImage = "nobody.invalid/guest:1" }, kind: sandbox.ErrNoImage, text: "nobody.invalid/guest:1", hint: "kubernetes.guestImage"},
		"unschedulable": {spec: func(s *sandbox.Spec) { s.Limits = sandbox.Limits{CPUs: 500} }, kind: sandbox.ErrUnavailable, text: "Insufficient cpu", hint: "docker.cpus"},
		"selector":      {settings: func(s *kubekeys.Settings) { s.NodeSelector = map[string]string{"no": "node"} }, kind: sandbox.ErrUnavailable, text: "node", hint: "kubernetes.nodeSelector"},
		"runtime class": {settings: func(s *kubekeys.Settings) { s.RuntimeClass = "nothing" }, kind: sandbox.ErrUnsupported, text: "nothing", hint: "kubernetes.runtimeClass"},
		"account":       {settings: func(s *kubekeys.Settings) { s.ServiceAccount = "nobody" }, kind: sandbox.ErrUnsupported, text: "nobody", hint: "kubernetes.serviceAccount"},
		"profile":       {settings: func(s *kubekeys.Settings) { s.SeccompProfile = "not/there.json" }, kind: sandbox.ErrUnsupported, text: "not/there.json", hint: "kubernetes.seccompProfile"},
		"namespace":     {settings: func(s *kubekeys.Settings) { s.Namespace = "atoll-nowhere" }, kind: sandbox.ErrUnavailable, text: "atoll-nowhere", hint: "kubernetes.namespace"},
		"verb":          {user: "nobody", kind: sandbox.ErrUnavailable, text: "leases", hint: "verb create on leases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, spec := *base, testSpec()
			settings.StartTimeoutSec = 20
			spec.Image, spec.Limits = testImage, sandbox.Limits{Memory: 64 << 20}
			if c.settings != nil {
				c.settings(&settings)
			}
			if c.spec != nil {
				c.spec(spec)
			}
			r := testRuntime(t, &settings)
			known, err := connect(&settings)
			if err != nil {
				t.Fatal(err)
			}
			known.config.Impersonate.UserName = c.user
			if known, err = reconnect(known); err != nil {
				t.Fatal(err)
			}
			r.known = known
			begin := time.Now()
			_, err = r.Create(t.Context(), spec)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.Contains(errhint.Of(err), c.hint) {
				t.Errorf("%v (%s)", err, errhint.Of(err))
			}
			if took := time.Since(begin); took > 2*time.Minute { // its own limit and a busy machine
				t.Errorf("it took %v", took)
			}
			if left, err := testRuntime(t, base).List(t.Context()); len(left) > 0 || err != nil {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestIgnoredPolicy: a network plug-in that does not enforce policies is found out by the
// probe, and what was made is gone.
func TestIgnoredPolicy(t *testing.T) {
	s := clusterSettings(t)
	s.SeccompProfile, s.TrustNetworkPolicy = "", true
	r := testRuntime(t, s)
	spec := testSpec()
	spec.Image, spec.Mounts, spec.Limits = testImage, nil, sandbox.Limits{Memory: 64 << 20}
	inst, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if inst.Seen().Labels[noteNetwork] != "policy (probed)" {
		t.Errorf("labels %v", inst.Seen().Labels)
	}
	err = inst.Start(t.Context())
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "reaches") || !strings.Contains(errhint.Of(err), "kubernetes.seccompProfile") {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLatePolicy: a plug-in that enforces a policy only after the pod runs is waited for: the
// sandbox starts when nothing is reached from inside any more.
func TestLatePolicy(t *testing.T) {
	c := clustertest.Shared(t)
	s := clusterSettings(t)
	s.SeccompProfile, s.TrustNetworkPolicy = "", true
	r := testRuntime(t, s)
	made, err := r.Create(t.Context(), smallSpec("late-policy"))
	if err != nil {
		t.Fatal(err)
	}
	removeAtEnd(t, made)
	inst := made.(*Instance)
	begun := make(chan error, 1)
	go func() { begun <- inst.Start(t.Context()) }()
	var address string
	for deadline := time.Now().Add(time.Minute); address == ""; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatal("the pod has no address")
		}
		address = strings.TrimSpace(c.Kubectl(t, "", "-n", s.Namespace, "get", "pods", "-o", "jsonpath={.items[?(@.status.phase=='Running')].status.podIP}"))
	}
	select {
	case err := <-begun:
		t.Fatalf("it did not wait for the policy: %v", err)
	case <-time.After(2 * probeTimeout): // long enough for it to reach something
	}
	c.Deny(t, address)
	if err := <-begun; err != nil {
		t.Fatalf("%v (%s)", err, errhint.Of(err))
	}
	m := machine.New(inst.Dial, nil)
	defer m.Close()
	if out := shell(t, m, unreachable(r)); !strings.Contains(out, "no way") {
		t.Error(out)
	}
}

// TestQuota: a namespace that is full says so.
func TestQuota(t *testing.T) {
	s := clusterSettings(t)
	r := testRuntime(t, s)
	c, err := r.cluster()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.of(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "none"}, "spec": map[string]any{"hard": map[string]any{"pods": "0"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec()
	spec.Image = testImage
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pollInterval) {
		if _, err = r.Create(t.Context(), spec); errors.Is(err, sandbox.ErrUnavailable) || time.Now().After(deadline) {
			break // a quota counts from when the cluster has looked at it
		}
	}
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "exceeded quota") || !strings.Contains(errhint.Of(err), "ResourceQuota") {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
