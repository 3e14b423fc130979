package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// settle is how long the cluster may take until what was applied is in force.
const settle = 2 * time.Minute

// An installation is what is in this folder, applied under names of a test's own: other
// tests use the cluster too.
type installation struct {
	*clustertest.Cluster
	gateway, sandboxes, nodes string
	namespaces, rest          []object
}

// install applies every object, first as a question to the server, each changed as a test
// likes.
func install(t *testing.T, change func(*installation, object)) *installation {
	t.Helper()
	return installFrom(t, ".", change)
}

// installFrom is install of one of the folders here.
func installFrom(t *testing.T, dir string, change func(*installation, object)) *installation {
	t.Helper()
	c := clustertest.Shared(t)
	name := fmt.Sprintf("deploy-%x", time.Now().UnixNano())
	i := &installation{Cluster: c, gateway: name, sandboxes: name + "-sandboxes", nodes: name + "-nodes"}
	for _, o := range parse(t, c, c.Kubectl(t, "", "kustomize", dir)) {
		o = i.renamed(t, o)
		change(i, o)
		if o["kind"] == "Namespace" {
			i.namespaces = append(i.namespaces, o)
		} else {
			i.rest = append(i.rest, o)
		}
	}
	t.Cleanup(func() { i.remove(t) })
	i.Kubectl(t, list(t, i.namespaces), "apply", "--server-side", "-f", "-")
	i.Kubectl(t, list(t, i.rest), "apply", "--server-side", "--dry-run=server", "-f", "-")
	i.Kubectl(t, list(t, i.rest), "apply", "--server-side", "-f", "-")
	i.awaitControllers(t)
	return i
}

// awaitControllers waits for what controllers add to the objects: they do it later, and much
// later where the API server was away just before.
func (i *installation) awaitControllers(t *testing.T) {
	t.Helper()
	i.Kubectl(t, "", "wait", "--namespace", i.sandboxes, "--for=create", "--timeout=60s", "serviceaccount/default")
	i.Kubectl(t, "", "wait", "--namespace", i.sandboxes, "--for=jsonpath={.status.hard.pods}", "--timeout=60s", "resourcequota/sandboxes")
}

// withoutPods makes an installation of objects alone: the images are not in the cluster.
func withoutPods(_ *installation, o object) {
	switch o["kind"] {
	case "Deployment":
		at(o, "spec")["replicas"] = 0
	case "DaemonSet":
		at(o, "spec", "template", "spec", "nodeSelector")["atoll.dev/sandbox"] = "none"
	}
}

// renamed gives the namespaces, and what has no namespace, the names of this test.
func (i *installation) renamed(t *testing.T, o object) object {
	t.Helper()
	text := strings.NewReplacer(`"atoll"`, `"`+i.gateway+`"`, `"atoll-sandboxes"`, `"`+i.sandboxes+`"`, `"atoll-nodes"`, `"`+i.nodes+`"`,
		"serviceaccount:atoll:", "serviceaccount:"+i.gateway+":").Replace(indented(t, o))
	var changed object
	if err := json.Unmarshal([]byte(text), &changed); err != nil {
		t.Fatal(err)
	}
	if changed["kind"] == "PriorityClass" {
		changed["metadata"].(map[string]any)["name"] = i.gateway
	}
	return changed
}

func (i *installation) remove(t *testing.T) {
	t.Helper()
	i.Remove(t, "validatingadmissionpolicybinding", i.sandboxes)
	i.Remove(t, "validatingadmissionpolicy", i.sandboxes)
	i.Remove(t, "priorityclass", i.gateway)
	i.Remove(t, "runtimeclass", i.gateway)
	i.Remove(t, "namespace", i.gateway, i.sandboxes, i.nodes)
}

func list(t *testing.T, objects []object) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// account returns the name by which the API server knows a service account.
func account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }

func TestOnCluster(t *testing.T) {
	i := install(t, withoutPods)
	i.awaitPolicy(t)
	t.Run("admission", i.testAdmission)
	t.Run("rights", i.testRights)
	t.Run("limits", i.testLimits)
	t.Run("apply again", func(t *testing.T) {
		if out := i.Kubectl(t, list(t, i.rest), "diff", "--server-side", "-f", "-"); out != "" {
			t.Errorf("what was applied is not what is there:\n%s", out)
		}
	})
}
