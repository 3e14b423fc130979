package kube

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

// testImage is what sandboxes of these tests are made from; the nodes have it.
const testImage = "openclaw-sandbox:bookworm-slim"

// namespaceVariable says to a process that a test starts which namespace to use.
const namespaceVariable = "ATOLL_TEST_KUBE_NAMESPACE"

// clusterSettings are those of the test cluster, in a namespace of its own in which pods
// are held to the level restricted.
func clusterSettings(t *testing.T) *kubekeys.Settings {
	t.Helper()
	s := testSettings()
	s.Kubeconfig, s.ImagePullPolicy, s.ServiceAccount = need.Cluster(t), "Never", "default"
	clustertest.Shared(t)
	s.GuestImage = cmp.Or(os.Getenv("ATOLL_TEST_GUEST_IMAGE"), "atoll-guest:latest")
	s.StartTimeoutSec = 60 // the machine may be busy
	installProfile(t, s)
	s.Namespace = os.Getenv(namespaceVariable)
	if s.Namespace == "" {
		s.Namespace = makeNamespace(t, s)
		t.Setenv(namespaceVariable, s.Namespace)
	}
	return s
}

// installProfile puts the profile of system calls on the nodes, which are this machine. Trees
// that share a cluster have one each.
func installProfile(t *testing.T, s *kubekeys.Settings) {
	t.Helper()
	profile, err := seccomp.NodeProfile(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(profile)
	s.SeccompProfile = fmt.Sprintf("atoll/test-%x.json", sum[:8])
	nodes, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Kubeconfig), "node*", "kubelet"))
	for _, node := range nodes {
		file := filepath.Join(node, "seccomp", s.SeccompProfile)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		staged := file + "." + rand.Text()
		if found, _ := os.ReadFile(file); bytes.Equal(found, profile) {
			continue
		}
		if err := os.WriteFile(staged, profile, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(staged, file); err != nil {
			t.Fatal(err)
		}
	}
}

// makeNamespace makes a namespace for one test, and removes it at the end.
func makeNamespace(t *testing.T, s *kubekeys.Settings) string {
	t.Helper()
	c, err := connect(s)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := c.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	made, err := namespaces.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"generateName": "atoll-test-", "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := namespaces.Delete(ctx, made.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	awaitAccount(t, c, made.GetName())
	return made.GetName()
}

// awaitAccount waits until the namespace has its service account, without which it takes
// no pods.
func awaitAccount(t *testing.T, c *cluster, namespace string) {
	t.Helper()
	accounts := c.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pollInterval) {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestSuite is the suite of every runtime, on a real cluster.
func TestSuite(t *testing.T) {
	s := clusterSettings(t)
	sandboxtest.Run(t, sandboxtest.Subject{
		Open: func(t *testing.T, stateDir string) sandbox.Runtime {
			t.Helper()
			r, err := New(Options{Settings: *s, Installation: stateDir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			return r
		},
		Image: testImage, Workdir: "/workspace", Walls: true, Copies: true, Parallel: true, Refused: []string{"docker.pidsLimit", "docker.ulimits"},
	})
}

// reconnect is c with what its configuration says now.
func reconnect(c *cluster) (*cluster, error) {
	api, err := dynamic.NewForConfig(c.config)
	return &cluster{config: c.config, api: api, namespace: c.namespace}, err
}

// testRuntime is a runtime on the test cluster.
func testRuntime(t *testing.T, s *kubekeys.Settings) *Runtime {
	t.Helper()
	r, err := New(Options{Settings: *s, Installation: strings.ReplaceAll(t.Name(), "/", "-")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// unreachable is a script that tries to reach the API server.
func unreachable(r *Runtime) string {
	host := strings.TrimPrefix(r.known.config.Host, "https://")
	address, port, _ := strings.Cut(host, ":")
	return "timeout 5 bash -c '</dev/tcp/" + address + "/" + port + "' 2>&1 && echo reached || echo no way to " + host
}

// TestFirstCommand: a pod is made, a command runs in it over the wire, the probe of its
// network tells what it knows, and nothing is left.
func TestFirstCommand(t *testing.T) {
	r := testRuntime(t, clusterSettings(t))
	spec := testSpec()
	spec.Image, spec.Mounts[0].Source, spec.Limits, spec.Network = testImage, t.TempDir(), sandbox.Limits{Memory: 256 << 20}, "none"
	inst, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	defer m.Close()
	var out bytes.Buffer
	res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", "id -u; cat /proc/1/comm; " + unreachable(r)}, Stdout: &out, Stderr: &out, Timeout: time.Minute})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v: %s", res, err, out.String())
	}
	for _, want := range []string{"1000\nguest\n", "no way to "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, out.String())
		}
	}
	probeKnows(t, r, inst.(*Instance), m)
	if err := inst.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
