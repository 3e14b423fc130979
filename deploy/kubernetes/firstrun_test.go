package kubernetes_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// The images that the manifests name, and what they are made from in tests.
const (
	gatewayName, sandboxName, guestName = "ghcr.io/atoll-run/atoll:latest", "ghcr.io/atoll-run/sandbox:latest", "ghcr.io/atoll-run/atoll-guest:latest"
	sandboxImage                        = "openclaw-sandbox:bookworm-slim"
)

// TestFirstRun does what docs/kubernetes.md says, from the images to a run whose model is
// scripted: the gateway is a pod with the rights of its Role, under the policy.
func TestFirstRun(t *testing.T) {
	model, err := fakellm.Listen(t.Context(), "tcp", os.Getenv("ATOLL_TEST_CLUSTER_HOST")+":0", fakellm.Script{
		fakellm.Use("exec", `{"command": "echo $((6*7)) > answer; cat answer"}`), fakellm.Say("It is 42."),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	loadImages(t)
	volume := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	i := install(t, func(i *installation, o object) { i.forRuns(t, o, "http://"+model.Addr().String()) })
	i.provideVolume(t, volume)
	i.Kubectl(t, "", "-n", i.gateway, "create", "secret", "generic", "atoll-gateway-env", "--from-literal=FAKE_KEY=key-1234567890")
	i.Kubectl(t, "", "-n", i.gateway, "rollout", "restart", "deployment/atoll-gateway")
	i.Kubectl(t, "", "-n", i.nodes, "rollout", "status", "daemonset/atoll-seccomp", "--timeout=2m")
	i.Kubectl(t, "", "-n", i.gateway, "rollout", "status", "deployment/atoll-gateway", "--timeout=2m")
	token := i.token(t)
	c, err := client.New(client.Options{URL: i.forward(t), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	i.doRun(t, c)
	if left := i.Kubectl(t, "", "-n", i.sandboxes, "get", "pods,leases", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
}

// doRun has the gateway's own agent do a task.
func (i *installation) doRun(t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	begin := time.Now()
	made, err := c.Start(ctx, &api.RunRequest{Message: "how much is six times seven?"}, "first")
	if err != nil {
		t.Fatal(err)
	}
	over, err := c.Events(ctx, made.ID, 0, func(api.Event) error { return nil })
	if err != nil || over.Error != nil || over.Text != "It is 42." {
		t.Fatalf("%+v, %v\n%s", over, err, i.Kubectl(t, "", "-n", i.gateway, "logs", "deployment/atoll-gateway", "--tail=50"))
	}
	t.Logf("the run took %.1f s, image %s, %d tokens", time.Since(begin).Seconds(), over.Image, over.Bill.Input)
}

// forRuns changes what an installation on the test cluster needs: its names in the
// configuration, the scripted model, and where the kubelet looks for profiles.
func (i *installation) forRuns(t *testing.T, o object, model string) {
	t.Helper()
	switch o["kind"] {
	case "ConfigMap":
		text, _ := at(o, "data")["atoll.json5"].(string)
		at(o, "data")["atoll.json5"] = strings.NewReplacer(
			`namespace: "atoll-sandboxes"`, `namespace: "`+i.sandboxes+`", startTimeoutSec: 60`, `priorityClass: "atoll-sandbox"`, `priorityClass: "`+i.gateway+`"`,
			`agents: {"defaults":{`, `llm: {"providers":{"fake":{"kind":"openai","url":"`+model+`","keys":[{"env":"FAKE_KEY"}],"models":["m"]}},"prices":{"m":{"input":1,"output":2}}}, agents: {"defaults":{"model":"fake/m",`,
		).Replace(text)
	case "DaemonSet":
		at(o, "spec", "template", "spec", "volumes", "hostPath")["path"] = filepath.Join(filepath.Dir(i.Kubeconfig()), "node1", "kubelet", "seccomp")
	}
}

// loadImages builds the images as docs/kubernetes.md says and puts them on the nodes.
func loadImages(t *testing.T) {
	t.Helper()
	t.Setenv("DOCKER_HOST", enginetest.Docker(t))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := func(file, name string, args ...string) {
		command(t, root, "docker", append([]string{"build", "--quiet", "-f", "deploy/kubernetes/" + file, "-t", name}, append(args, ".")...)...)
	}
	build("Dockerfile", gatewayName, "--build-arg", "BASE_IMAGE="+sandboxImage)
	build("guest.Dockerfile", guestName)
	command(t, root, "docker", "tag", sandboxImage, sandboxName)
	command(t, root, "scripts/test-cluster.sh", "load", gatewayName, guestName, sandboxName)
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// provideVolume gives the claim of the gateway a directory of the node.
func (i *installation) provideVolume(t *testing.T, dir string) {
	t.Helper()
	i.Kubectl(t, indented(t, object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": i.gateway}, "spec": object{
		"capacity": object{"storage": "20Gi"}, "accessModes": []any{"ReadWriteOnce"}, "hostPath": object{"path": dir}, "persistentVolumeReclaimPolicy": "Retain",
		"claimRef": object{"namespace": i.gateway, "name": "atoll-gateway"},
	}}), "create", "-f", "-")
	t.Cleanup(func() { i.Remove(t, "persistentvolume", i.gateway) })
}

// command is kubectl, to be started.
func (i *installation) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(filepath.Dir(i.Kubeconfig()), "bin", "kubectl"), append([]string{"--kubeconfig", i.Kubeconfig()}, args...)...)
}

// token makes one for runs, in the pod, as docs/kubernetes.md says.
func (i *installation) token(t *testing.T) string {
	t.Helper()
	cmd := i.command(t.Context(), "-n", i.gateway, "exec", "deploy/atoll-gateway", "--", "atoll", "token", "create", "--role", "run", "--account", "acct-7")
	token, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// forward makes a port of this machine lead to the gateway, and returns its address.
func (i *installation) forward(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := i.command(ctx, "-n", i.gateway, "port-forward", "deploy/atoll-gateway", ":18789")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, found := strings.Cut(line, "127.0.0.1:")
	if err != nil || !found {
		t.Fatalf("port-forward said %q, %v", line, err)
	}
	port, _, _ := strings.Cut(address, " ")
	return "http://127.0.0.1:" + port
}
