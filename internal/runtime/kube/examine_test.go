package kube

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// examined is what Examine finds of a plain sandbox, by name.
func examined(t *testing.T, s *kubekeys.Settings, user string) map[string]sandbox.Finding {
	t.Helper()
	r := testRuntime(t, s)
	if user != "" {
		known, err := connect(s)
		if err != nil {
			t.Fatal(err)
		}
		known.config.Impersonate.UserName = user
		if r.known, err = reconnect(known); err != nil {
			t.Fatal(err)
		}
	}
	spec := testSpec()
	spec.Image, spec.Limits, spec.Network = testImage, sandbox.Limits{Memory: 256 << 20}, "none"
	found := map[string]sandbox.Finding{}
	for _, f := range r.Examine(t.Context(), spec) {
		found[f.Name] = f
	}
	return found
}

// wantFinding fails unless something of that name and level was found, with the words of
// want in it.
func wantFinding(t *testing.T, found map[string]sandbox.Finding, want sandbox.Finding) {
	t.Helper()
	f := found[want.Name]
	if f.Level != want.Level || !strings.Contains(f.Detail, want.Detail) || !strings.Contains(f.Remedy, want.Remedy) {
		t.Errorf("want %+v, found %v", want, found)
	}
}

// TestExamine: a cluster that has everything is found fine, by a pod that is gone after.
func TestExamine(t *testing.T) {
	s := clusterSettings(t)
	s.PodPidsLimit = 512 // as scripts/test-cluster.sh has it
	found := examined(t, s, "")
	wantFinding(t, found, sandbox.Finding{Name: "cluster", Level: sandbox.FindingOK, Detail: "v1.34"})
	wantFinding(t, found, sandbox.Finding{Name: "rights", Level: sandbox.FindingOK, Detail: "all 17 verbs"})
	wantFinding(t, found, sandbox.Finding{Name: "pod security", Level: sandbox.FindingOK, Detail: "restricted"})
	wantFinding(t, found, sandbox.Finding{Name: "pod", Level: sandbox.FindingOK, Detail: "ran on node"})
	wantFinding(t, found, sandbox.Finding{Name: "network", Level: sandbox.FindingOK, Detail: "own"})
	wantFinding(t, found, sandbox.Finding{Name: "processes", Level: sandbox.FindingOK, Detail: "at most 512"})
	wantFinding(t, found, sandbox.Finding{Name: "open files", Level: sandbox.FindingOK, Detail: "in flight"})
	wantBuffers := sandbox.Finding{Name: "socket buffers", Level: sandbox.FindingOK, Detail: "count as memory"}
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil { // of version 1; nodes are this machine
		wantBuffers = sandbox.Finding{Name: "socket buffers", Level: sandbox.FindingWarning, Detail: "do not count as memory on node", Remedy: "unified_cgroup_hierarchy"}
	}
	wantFinding(t, found, wantBuffers)
	if left, err := testRuntime(t, s).List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestExamineFindsWhatIsMissing: each thing that a cluster lacks is named with its remedy.
func TestExamineFindsWhatIsMissing(t *testing.T) {
	base := clusterSettings(t)
	for name, c := range map[string]struct {
		settings                    func(*kubekeys.Settings)
		user, where, detail, remedy string
	}{
		"kubeconfig":    {settings: func(s *kubekeys.Settings) { s.Kubeconfig = "/nowhere" }, where: "cluster", detail: "no kubeconfig", remedy: "KUBECONFIG"},
		"rights":        {user: "nobody", where: "rights: leases", detail: "get, list, watch, create, update, patch, delete", remedy: "Role"},
		"exec":          {user: "nobody", where: "rights: pods/exec", detail: "get, create", remedy: "deploy/kubernetes"},
		"runtime class": {settings: func(s *kubekeys.Settings) { s.RuntimeClass = "nothing" }, where: "pod", detail: "nothing", remedy: "kubernetes.runtimeClass"},
		"account":       {settings: func(s *kubekeys.Settings) { s.ServiceAccount = "nobody" }, where: "pod", detail: "nobody", remedy: "kubernetes.serviceAccount"},
		"profile":       {settings: func(s *kubekeys.Settings) { s.SeccompProfile = "not/there.json" }, where: "pod", detail: "not/there.json", remedy: "kubernetes.seccompProfile"},
		"network":       {settings: func(s *kubekeys.Settings) { s.SeccompProfile = "" }, where: "docker.network", detail: "nothing keeps a pod", remedy: "kubernetes.trustNetworkPolicy"},
		"policy":        {settings: func(s *kubekeys.Settings) { s.SeccompProfile, s.TrustNetworkPolicy = "", true }, where: "pod", detail: "reaches", remedy: "NetworkPolicy"},
		"processes":     {settings: func(s *kubekeys.Settings) { s.PodPidsLimit = 100 }, where: "processes", detail: "started 116 processes", remedy: "podPidsLimit"},
		"namespace":     {settings: func(s *kubekeys.Settings) { s.Namespace = "atoll-nowhere" }, where: "namespace", detail: "atoll-nowhere", remedy: "kubernetes.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := *base
			if c.settings != nil {
				c.settings(&settings)
			}
			wantFinding(t, examined(t, &settings, c.user), sandbox.Finding{Name: c.where, Level: sandbox.FindingFailed, Detail: c.detail, Remedy: c.remedy})
		})
	}
}

// TestExamineLevels: a namespace without a level is a warning, one that is full a failure.
func TestExamineLevels(t *testing.T) {
	s := clusterSettings(t)
	c, err := connect(s)
	if err != nil {
		t.Fatal(err)
	}
	space, err := c.api.Resource(namespaces).Get(t.Context(), s.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	space.SetLabels(nil)
	if _, err := c.api.Resource(namespaces).Update(t.Context(), space, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "none"}, "spec": map[string]any{"hard": map[string]any{"pods": "0"}},
	}}
	if _, err := c.of(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	found := examined(t, s, "")
	wantFinding(t, found, sandbox.Finding{Name: "pod security", Level: sandbox.FindingWarning, Detail: "level none", Remedy: "kubectl label"})
	wantFinding(t, found, sandbox.Finding{Name: "pod", Level: sandbox.FindingFailed, Detail: "quota"})
}
