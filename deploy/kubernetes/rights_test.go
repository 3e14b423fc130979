package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// needed are the rights that the gateway uses in the namespace of its sandboxes, and all
// that it has.
func needed() []string {
	var all []string
	for resource, verbs := range map[string]string{
		"pods": "get list watch create patch delete", "pods/exec": "get create", "events": "list watch",
		"leases.coordination.k8s.io": "get list watch create update patch delete", "persistentvolumeclaims": "get list create delete",
	} {
		for verb := range strings.FieldsSeq(verbs) {
			all = append(all, verb+" "+resource)
		}
	}
	return all
}

// resources are asked for with every verb: what is needed of them, and what would give more.
func resources() []string {
	return []string{
		"pods", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "pods/log", "pods/status", "pods/eviction", "pods/binding", "events",
		"leases.coordination.k8s.io", "persistentvolumeclaims", "secrets", "configmaps", "serviceaccounts", "serviceaccounts/token", "services", "nodes", "nodes/proxy",
		"namespaces", "persistentvolumes", "resourcequotas", "limitranges", "deployments.apps", "jobs.batch", "networkpolicies.networking.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
	}
}

func verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}

// review is a question whether an account may do something.
func review(as, namespace, verb, resource string) object {
	name, group, _ := strings.Cut(resource, ".")
	name, sub, _ := strings.Cut(name, "/")
	return object{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": object{
		"user": as, "groups": []string{"system:serviceaccounts", "system:authenticated"},
		"resourceAttributes": object{"namespace": namespace, "verb": verb, "group": group, "resource": name, "subresource": sub},
	}}
}

// allowed returns which "verb resource" an account has in a namespace.
func (i *installation) allowed(t *testing.T, as, namespace string) []string {
	t.Helper()
	var asked []string
	var reviews []object
	for _, resource := range resources() {
		for _, verb := range verbs() {
			asked, reviews = append(asked, verb+" "+resource), append(reviews, review(as, namespace, verb, resource))
		}
	}
	answers := parseStream(t, i.Kubectl(t, list(t, reviews), "create", "-o", "json", "-f", "-"))
	if len(answers) != len(asked) {
		t.Fatalf("%d answers to %d questions", len(answers), len(asked))
	}
	var all []string
	for n, answer := range answers {
		if at(answer, "status")["allowed"] == true {
			all = append(all, asked[n])
		}
	}
	slices.Sort(all)
	return all
}

// parseStream reads the answers of the server, in their order.
func parseStream(t *testing.T, out string) (objects []object) {
	t.Helper()
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var o object
		if err := decoder.Decode(&o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
		if items, ok := o["items"].([]any); ok {
			objects = objects[:len(objects)-1]
			for _, item := range items {
				objects = append(objects, item.(map[string]any))
			}
		}
	}
	return objects
}

// The gateway's account has what it needs in one namespace and nothing elsewhere;
// the account of sandboxes has nothing.
func (i *installation) testRights(t *testing.T) {
	want := needed()
	slices.Sort(want)
	for _, c := range []struct {
		as, namespace string
		want          []string
	}{
		{account(i.gateway, "atoll-gateway"), i.sandboxes, want},
		{account(i.gateway, "atoll-gateway"), i.gateway, nil},
		{account(i.gateway, "atoll-gateway"), "kube-system", nil},
		{account(i.sandboxes, "atoll-sandbox"), i.sandboxes, nil},
	} {
		if got := i.allowed(t, c.as, c.namespace); !slices.Equal(got, c.want) {
			t.Errorf("%s in %s may\n%s\nwant\n%s", c.as, c.namespace, fmt.Sprint(got), fmt.Sprint(c.want))
		}
	}
}

// Quota, policy of the network and priority are there and say what they are for.
func (i *installation) testLimits(t *testing.T) {
	for what, want := range map[string]string{
		"resourcequota/sandboxes -o jsonpath={.status.hard.pods}":                  "200",
		"networkpolicy/deny-all -o jsonpath={.spec.policyTypes}{.spec.egress}":     `["Ingress","Egress"]`,
		"priorityclass/" + i.gateway + " -o jsonpath={.value}{.preemptionPolicy}":  "-1000Never",
		"serviceaccount/atoll-sandbox -o jsonpath={.automountServiceAccountToken}": "false",
	} {
		args := append([]string{"get", "--namespace", i.sandboxes}, strings.Fields(what)...)
		if got := i.Kubectl(t, "", args...); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}
