package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const agentSandboxModule = "sigs.k8s.io/agent-sandbox"

// InstallAgentSandbox applies the CustomResourceDefinitions of agent-sandbox until the test
// ends. Remove the objects before.
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

// agentSandbox is the program of the cluster that is agent-sandbox's controller.
const agentSandbox = "agent-sandbox"

// RunAgentSandbox runs the controller of agent-sandbox until the test ends. The test is left
// out where it was not built.
func (c *Cluster) RunAgentSandbox(tb testing.TB) {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(c.dir, "bin", "agent-sandbox-controller")); err != nil {
		tb.Skip("this test needs the controller of agent-sandbox: run make test-cluster, or scripts/test-cluster.sh agent-sandbox")
	}
	c.Start(tb, agentSandbox)
	tb.Cleanup(func() {
		if c.script(tb, "stop", agentSandbox); tb.Failed() {
			log, _ := os.ReadFile(filepath.Join(c.dir, agentSandbox+".log"))
			tb.Logf("the controller's last words:\n%s", log[max(0, len(log)-4000):])
		}
	})
}
