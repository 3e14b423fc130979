// Package clustertest gives tests the real Kubernetes cluster that
// scripts/test-cluster.sh keeps up. A test that needs it and finds none is left out,
// and says how to get one (package need).
package clustertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// askTimeout bounds one call of kubectl, on a machine that does much else.
const askTimeout = 2 * time.Minute

// A Cluster is one that runs.
type Cluster struct {
	dir     string
	stopped []string // programs that Alone starts again
}

// Shared returns the cluster that all tests share. None that stops parts of it runs until the
// test has ended.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	c := &Cluster{dir: filepath.Dir(need.Cluster(tb))}
	c.hold(tb, syscall.LOCK_SH)
	if out, err := c.Try(tb.Context(), "", "get", "--raw", "/readyz"); err != nil {
		tb.Fatalf("the cluster in %s does not answer: run `scripts/test-cluster.sh up`: %v: %s", c.dir, err, out)
	}
	return c
}

// Kubeconfig returns the file with the credentials of the cluster's administrator.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "admin.kubeconfig") }

// Try runs kubectl as the administrator with input and returns all that it says.
func (c *Cluster) Try(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, "bin", "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// Kubectl is Try for what must succeed.
func (c *Cluster) Kubectl(tb testing.TB, input string, args ...string) string {
	tb.Helper()
	out, err := c.Try(tb.Context(), input, args...)
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Remove deletes objects, when a test is over too, and does not wait until they are gone.
func (c *Cluster) Remove(tb testing.TB, kind string, names ...string) {
	tb.Helper()
	args := append([]string{"delete", "--wait=false", "--ignore-not-found", kind}, names...)
	if out, err := c.Try(context.WithoutCancel(tb.Context()), "", args...); err != nil {
		tb.Errorf("%v: %s", err, out)
	}
}

// Namespace makes a namespace in which pods are held to the level restricted, and removes
// it at the end.
func (c *Cluster) Namespace(tb testing.TB, prefix string) string {
	tb.Helper()
	name := fmt.Sprintf("%s-%s", prefix, strings.ToLower(rand.Text()[:8]))
	c.Kubectl(tb, "", "create", "namespace", name)
	tb.Cleanup(func() { c.Remove(tb, "namespace", name) })
	c.Kubectl(tb, "", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if out, err := c.Try(tb.Context(), "", "-n", name, "get", "serviceaccount", "default"); err == nil {
			return name
		} else if time.Now().After(deadline) {
			tb.Fatal(out)
		}
	}
}

// A Volume is a PersistentVolume of 1Gi on a directory of a node: the cluster has nothing that
// makes volumes.
type Volume struct {
	Name, Class      string
	Namespace, Claim string // of the claim that it is for; "": any of its class
}

// Volume makes a volume, and removes it at the end.
func (c *Cluster) Volume(tb testing.TB, v Volume) {
	tb.Helper()
	node := strings.TrimSpace(c.Kubectl(tb, "", "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"))
	claim := ""
	if v.Claim != "" {
		claim = fmt.Sprintf(`"claimRef":{"namespace":%q,"name":%q},`, v.Namespace, v.Claim)
	}
	c.Kubectl(tb, fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%q},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],
		"persistentVolumeReclaimPolicy":"Retain","storageClassName":%q,"local":{"path":%q},%s
		"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":[%q]}]}]}}}}`,
		v.Name, v.Class, tb.TempDir(), claim, node), "create", "-f", "-")
	tb.Cleanup(func() { c.Remove(tb, "persistentvolume", v.Name) })
}
