package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const (
	agentSandboxModule = "sigs.k8s.io/agent-sandbox"
	// agentSandbox is the program of the cluster that is agent-sandbox's controller.
	agentSandbox = "agent-sandbox"
)

// ReserveAgentSandbox keeps other tests, also of other processes, from installing agent-sandbox
// until the test ends. Those that find it reserved wait.
func (c *Cluster) ReserveAgentSandbox(tb testing.TB) {
	tb.Helper()
	file, err := os.OpenFile(filepath.Join(c.dir, agentSandbox+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = flock(file, syscall.LOCK_EX)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
}

// InstallAgentSandbox applies the CustomResourceDefinitions of agent-sandbox, which the test
// has reserved, until the test ends. Remove the objects before.
func (c *Cluster) InstallAgentSandbox(tb testing.TB) {
	tb.Helper()
	dir := filepath.Join(agentSandboxDir(tb), "k8s", "crds")
	c.Kubectl(tb, "", "apply", "--server-side", "-f", dir)
	tb.Cleanup(func() {
		if out, err := c.Try(context.WithoutCancel(tb.Context()), "", "delete", "--ignore-not-found", "-f", dir); err != nil {
			tb.Errorf("%v: %s", err, out)
		}
	})
	c.Kubectl(tb, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", dir)
}

// agentSandboxDir is where the module is that tools/agentsandbox names.
func agentSandboxDir(tb testing.TB) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", agentSandboxModule)
	cmd.Dir = filepath.Join(repository(tb), "tools", "agentsandbox")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil || module.Dir == "" {
		tb.Fatalf("%s: %v: %s", agentSandboxModule, err, said.String())
	}
	return module.Dir
}

// RunAgentSandbox installs agent-sandbox and runs its controller until the test ends. The test
// is left out where that was not built.
func (c *Cluster) RunAgentSandbox(tb testing.TB) {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(c.dir, "bin", "agent-sandbox-controller")); err != nil {
		tb.Skip("this test needs the controller of agent-sandbox: run make test-cluster, or scripts/test-cluster.sh agent-sandbox")
	}
	c.ReserveAgentSandbox(tb)
	c.InstallAgentSandbox(tb)
	c.awaitCollector(tb)
	c.Start(tb, agentSandbox)
	tb.Cleanup(func() {
		if c.script(tb, "stop", agentSandbox); tb.Failed() {
			log, _ := os.ReadFile(filepath.Join(c.dir, agentSandbox+".log"))
			tb.Logf("the controller's last words:\n%s", log[max(0, len(log)-4000):])
		}
	})
}

// ownedKinds are an object of each kind of agent-sandbox.
const ownedKinds = `
{apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxTemplate, metadata: {name: probe}, spec: {podTemplate: {spec: {containers: [{name: probe, image: probe}]}}}}
---
{apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxWarmPool, metadata: {name: probe}, spec: {replicas: 0, sandboxTemplateRef: {name: probe}}}
---
{apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxClaim, metadata: {name: probe}, spec: {warmPoolRef: {name: probe}}}
---
{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, metadata: {name: probe}, spec: {podTemplate: {spec: {containers: [{name: probe, image: probe}]}}}}
`

// awaitCollector waits until the garbage collector of the cluster, which looks for new kinds
// of objects every 30 seconds, collects those of agent-sandbox. What it meets before, it tries
// again after twice as long each time.
func (c *Cluster) awaitCollector(tb testing.TB) {
	tb.Helper()
	namespace := c.Namespace(tb, "atoll-collector")
	c.Kubectl(tb, ownedKinds, "-n", namespace, "create", "-f", "-")
	c.Kubectl(tb, ownedKinds, "-n", namespace, "delete", "--cascade=foreground", "--timeout=100s", "-f", "-")
}
