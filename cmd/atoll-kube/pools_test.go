package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// poolObjects are the kinds of objects of pools and of what comes out of them.
const poolObjects = "sandboxwarmpools,sandboxtemplates,sandboxclaims,sandboxes,pods,leases"

// TestAgentSandboxGateway: a gateway has the controller of agent-sandbox keep a pool as full
// as the configuration or an operator says, its sandboxes come out of it, a gateway that follows
// one that was killed goes on with the same pods, and nothing is left when a gateway ends, or
// after a prune where none runs.
func TestAgentSandboxGateway(t *testing.T) {
	c := clustertest.Shared(t)
	c.RunAgentSandbox(t)
	k := keeper{gateway: gateway{namespace: c.Namespace(t, "atoll-kept")}, c: c}
	k.user = newUser(t, c, k.namespace)
	keys := keysOf(c, k.namespace)
	keys["provider"] = "agent-sandbox"
	k.set("kubernetes", keys)
	k.configure(1)
	k.begin()
	k.claims()
	k.resizes()
	k.isKilled()
	k.reloads()
	k.ends()
	k.isPruned()
}

// keeper is a gateway that keeps pools, and its user.
type keeper struct {
	gateway
	*user
	c *clustertest.Cluster
}

// configure writes the size of the pool of agent api into the configuration.
func (k *keeper) configure(size int) {
	k.Helper()
	k.set("pools", map[string]any{"api": map[string]any{"size": size}})
}

func (k *keeper) begin() {
	k.Helper()
	k.open(k.T, k.dir, k.file())
}

// end sends the gateway a signal and waits until it has ended.
func (k *keeper) end(how os.Signal) {
	k.Helper()
	if err := k.cmd.Process.Signal(how); err != nil {
		k.Fatal(err)
	}
	_ = k.cmd.Wait()
}

// await waits until as many pods wait as the pool is to have, and no other, and returns the
// pool and their names.
func (k *keeper) await(size int) (p api.Pool, pods []string) {
	k.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		all, err := k.Pools(k.Context())
		if err != nil {
			k.Fatal(err)
		}
		if len(all.Pools) == 1 {
			p = all.Pools[0]
		}
		pods = strings.Fields(k.c.Kubectl(k.T, "", "-n", k.namespace, "get", "pods", "-l", "!atoll.dev/sandbox", "-o", "name"))
		if p.Size == size && p.Ready == size && p.Making == 0 && len(pods) == size {
			slices.Sort(pods)
			return p, pods
		}
		if time.Now().After(deadline) {
			k.Fatalf("%d should wait: %+v, pods %v", size, all.Pools, pods)
		}
	}
}

// claims has a new sandbox take the pod that waits.
func (k *keeper) claims() {
	k.Helper()
	_, waiting := k.await(1)
	k.want("kubernetes", "pool", "list")
	began := time.Now()
	box, err := k.CreateSandbox(k.Context(), &api.CreateSandbox{Env: map[string]string{"GREETING": "hello"}})
	if err != nil {
		k.Fatal(err)
	}
	took := time.Since(began)
	result, err := k.Exec(k.Context(), box.ID, &api.ExecRequest{Command: `echo "$GREETING $(cat /proc/sys/kernel/hostname)"`})
	if err != nil || result.Stdout != "hello sandbox\n" {
		k.Errorf("%+v, %v", result, err)
	}
	k.Logf("made in %v, with a first result after %v", took, time.Since(began))
	taken := strings.Fields(k.c.Kubectl(k.T, "", "-n", k.namespace, "get", "pods", "-l", "atoll.dev/sandbox", "-o", "name"))
	if !slices.Equal(taken, waiting) {
		k.Errorf("%v waited, the sandbox has %v", waiting, taken)
	}
	if _, err := k.CreateSandbox(k.Context(), &api.CreateSandbox{Limits: &api.SandboxLimits{MemoryBytes: 192 << 20}}); err != nil { // of another shape
		k.Error(err)
	}
	if p, _ := k.await(1); p.Claimed != 1 || p.Missed != 1 || p.Problem != "" || p.Backend != "kubernetes" {
		k.Errorf("%+v", p)
	}
}

// resizes has more wait, and fewer.
func (k *keeper) resizes() {
	k.Helper()
	k.want("3 are to wait", "pool", "resize", "api", "3")
	k.await(3)
	k.want("1 are to wait", "pool", "resize", "api", "1")
	k.await(1)
}

// isKilled has another gateway follow one that was killed.
func (k *keeper) isKilled() {
	k.Helper()
	_, waiting := k.await(1)
	k.end(syscall.SIGKILL)
	k.begin()
	if _, pods := k.await(1); !slices.Equal(pods, waiting) {
		k.Errorf("%v waited, the next gateway has %v", waiting, pods)
	}
	rows, err := k.Sandboxes(k.Context(), api.SandboxQuery{})
	if err != nil || len(rows.Sandboxes) != 2 {
		k.Errorf("the next gateway has %+v, %v", rows, err)
	}
	for _, box := range rows.Sandboxes {
		if _, err := k.RemoveSandbox(k.Context(), box.ID); err != nil {
			k.Error(err)
		}
	}
}

// reloads has the gateway read the configuration again.
func (k *keeper) reloads() {
	k.Helper()
	k.configure(2)
	if err := k.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		k.Fatal(err)
	}
	k.await(2)
}

// ends has the gateway end in order.
func (k *keeper) ends() {
	k.Helper()
	k.end(syscall.SIGTERM)
	k.nothingIsLeft()
}

// isPruned has prune remove the pool of a gateway that was killed, which is not in the
// configuration any more.
func (k *keeper) isPruned() {
	k.Helper()
	k.begin()
	k.await(2)
	k.end(syscall.SIGKILL)
	k.set("pools", nil)
	k.want("", "sandbox", "prune")
	k.nothingIsLeft()
}

// nothingIsLeft waits until the cluster has removed what pools had.
func (k *keeper) nothingIsLeft() {
	k.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		left, err := k.c.Try(context.WithoutCancel(k.Context()), "", "-n", k.namespace, "get", poolObjects, "-o", "name")
		if err == nil && left == "" {
			return
		}
		if time.Now().After(deadline) {
			k.Fatalf("left: %s, %v", left, err)
		}
	}
}
