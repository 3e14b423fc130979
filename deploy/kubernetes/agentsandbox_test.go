package kubernetes_test

import (
	"slices"
	"strings"
	"testing"
)

// controller is the account of agent-sandbox's controller.
const controller = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"

// With agent-sandbox its controller may create pods of sandboxes, and no others; without,
// it may create none. The gateway has what claims need, and no right to the controller's
// own objects.
func TestAgentSandboxObjects(t *testing.T) {
	for dir, refused := range map[string]bool{".": true, "agent-sandbox": false} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			i := installFrom(t, dir, withoutPods)
			i.awaitPolicy(t)
			i.Kubectl(t, "", "-n", i.sandboxes, "create", "rolebinding", "controller", "--clusterrole=edit", "--serviceaccount=agent-sandbox-system:agent-sandbox-controller")
			out, err := i.create(t, i.sandboxPod(t), "--as", controller)
			if refused != (err != nil && strings.Contains(out, "only the gateway creates sandboxes")) || !refused && err != nil {
				t.Errorf("a pod of the controller: %v: %s", err, out)
			}
			bad := i.sandboxPod(t)
			at(bad, "spec")["automountServiceAccountToken"] = true
			if out, err := i.create(t, bad, "--as", controller); err == nil {
				t.Errorf("a pod with a token is created: %s", out)
			}
			i.testAgentSandboxRights(t, !refused)
		})
	}
}

func (i *installation) testAgentSandboxRights(t *testing.T, allowed bool) {
	t.Helper()
	var want []string
	if allowed {
		want = []string{
			"create sandboxclaims", "create sandboxtemplates", "create sandboxwarmpools", "delete sandboxclaims", "delete sandboxtemplates", "delete sandboxwarmpools",
			"get sandboxclaims", "get sandboxwarmpools", "list sandboxclaims", "list sandboxtemplates", "list sandboxwarmpools", "patch sandboxwarmpools", "watch sandboxclaims",
		}
	}
	var asked []string
	var reviews []object
	for _, resource := range []string{"sandboxclaims", "sandboxtemplates", "sandboxwarmpools", "sandboxclaims/status"} {
		for _, verb := range verbs() {
			asked = append(asked, verb+" "+resource)
			reviews = append(reviews, review(account(i.gateway, "atoll-gateway"), i.sandboxes, verb, resource+".extensions.agents.x-k8s.io"))
		}
	}
	var got []string
	for n, answer := range parseStream(t, i.Kubectl(t, list(t, reviews), "create", "-o", "json", "-f", "-")) {
		if at(answer, "status")["allowed"] == true {
			got = append(got, asked[n])
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the gateway may %v, want %v", got, want)
	}
}
