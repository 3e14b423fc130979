package clustertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Snapshot keeps a copy of what etcd has, for Restore. Etcd is stopped meanwhile.
func (c *Cluster) Snapshot(tb testing.TB) {
	tb.Helper()
	c.Stop(tb, "etcd")
	saved := c.snapshot()
	tb.Cleanup(func() { _ = os.RemoveAll(saved) })
	if out, err := exec.CommandContext(tb.Context(), "cp", "-a", c.etcd(), saved).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	c.Start(tb, "etcd")
}

// Restore puts the copy back: the cluster has lost what was written since. As operators are
// told to, it starts again what has newer objects in its memory; containers go on.
func (c *Cluster) Restore(tb testing.TB) {
	tb.Helper()
	kubelets := c.kubelets(tb)
	for _, program := range append(slices.Clone(kubelets), "scheduler", "controllers", "apiserver", "etcd") {
		c.Kill(tb, program)
	}
	if err := os.RemoveAll(c.etcd()); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(c.snapshot(), c.etcd()); err != nil {
		tb.Fatal(err)
	}
	c.Start(tb, append([]string{"etcd", "apiserver", "controllers", "scheduler"}, kubelets...)...)
}

func (c *Cluster) etcd() string { return filepath.Join(c.dir, "etcd") }

func (c *Cluster) snapshot() string { return filepath.Join(c.dir, "etcd.snapshot") }

// kubelets returns the names of the kubelets' programs.
func (c *Cluster) kubelets(tb testing.TB) (names []string) {
	tb.Helper()
	for n := range c.nodes(tb) {
		names = append(names, "kubelet"+strconv.Itoa(n+1))
	}
	return names
}
