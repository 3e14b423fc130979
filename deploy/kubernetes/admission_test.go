package kubernetes_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
)

// sandboxPod is a pod as the gateway makes them.
func (i *installation) sandboxPod(t *testing.T) object {
	t.Helper()
	var pod object
	text := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "atl-test", "namespace": "` + i.sandboxes + `"}, "spec": {
		"restartPolicy": "Never", "automountServiceAccountToken": false, "serviceAccountName": "atoll-sandbox", "priorityClassName": "` + i.gateway + `",
		"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
		"initContainers": [{"name": "guest", "image": "ghcr.io/atoll-run/atoll-guest:latest", "command": ["/guest", "install", "/.atoll"],
			"securityContext": {"runAsUser": 65533, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
			"volumeMounts": [{"name": "guest", "mountPath": "/.atoll"}]}],
		"containers": [{"name": "sandbox", "image": "ghcr.io/atoll-run/sandbox@sha256:` + strings.Repeat("0", 64) + `", "command": ["/.atoll/guest", "init"],
			"env": [{"name": "LANG", "value": "C.UTF-8"}], "resources": {"limits": {"memory": "512Mi"}, "requests": {"memory": "512Mi", "cpu": "50m"}},
			"securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
			"volumeMounts": [{"name": "guest", "mountPath": "/.atoll", "readOnly": true}]}],
		"volumes": [{"name": "guest", "emptyDir": {"sizeLimit": "32Mi"}}]}}`
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// create asks the server whether an account may create an object: the administrator,
// unless another is named.
func (i *installation) create(t *testing.T, o object, as ...string) (string, error) {
	t.Helper()
	return i.Try(t.Context(), indented(t, o), append([]string{"create", "--dry-run=server", "-f", "-"}, as...)...)
}

// awaitPolicy waits until the policy is in force, which is some time after it was applied.
func (i *installation) awaitPolicy(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(settle); ; time.Sleep(200 * time.Millisecond) {
		out, err := i.create(t, i.sandboxPod(t))
		if err != nil && strings.Contains(out, "only the gateway creates sandboxes") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policy is not in force: %v: %s", err, out)
		}
	}
}

// at returns what lies in an object at a path, the first of every list.
func at(o map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		next := o[key]
		if items, ok := next.([]any); ok {
			next = items[0]
		}
		o = next.(map[string]any)
	}
	return o
}

func (i *installation) testAdmission(t *testing.T) {
	if out, err := i.create(t, i.sandboxPod(t), "--as", account(i.gateway, "atoll-gateway")); err != nil {
		t.Fatalf("a pod of the gateway is refused: %v: %s", err, out)
	}
	i.Kubectl(t, `{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "`+i.gateway+`"}, "handler": "runc"}`, "create", "-f", "-")
	i.refuse(t, "security of pods", map[string]badPod{
		"root":      {set("runAsUser", 0, "containers", "securityContext"), "PodSecurity"},
		"host path": {volume(object{"hostPath": object{"path": "/"}}), "PodSecurity"},
	})
	// The policy stands alone where somebody lifts the level of the namespace.
	i.Kubectl(t, "", "label", "--overwrite", "namespace", i.sandboxes, "pod-security.kubernetes.io/enforce=privileged")
	i.refuse(t, "policy", badPods(i.gateway))
}

func (i *installation) refuse(t *testing.T, by string, pods map[string]badPod) {
	t.Run(by, func(t *testing.T) {
		for name, c := range pods {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pod := i.sandboxPod(t)
				c.change(at(pod, "spec"))
				if out, err := i.create(t, pod, "--as", account(i.gateway, "atoll-gateway")); err == nil || !strings.Contains(out, c.want) {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	})
}

// badPod is a change of a pod, and what the server says to it.
type badPod struct {
	change func(spec map[string]any)
	want   string
}

// volume adds a volume to a pod.
func volume(source object) func(map[string]any) {
	return func(spec map[string]any) {
		v := object{"name": "more"}
		maps.Copy(v, source)
		spec["volumes"] = append(spec["volumes"].([]any), v)
	}
}

// set gives a member of a pod's spec, found by keys, another value.
func set(key string, value any, keys ...string) func(map[string]any) {
	return func(spec map[string]any) { at(spec, keys...)[key] = value }
}

// badPods are what somebody could ask for who holds the gateway's account.
func badPods(runtimeClass string) map[string]badPod {
	const volumes, privileged, secrets = "never hostPath, secrets or tokens", "not privileged and cannot become so", "no Secret and no ConfigMap"
	return map[string]badPod{
		"host path":         {volume(object{"hostPath": object{"path": "/"}}), volumes},
		"secret":            {volume(object{"secret": object{"secretName": "s"}}), volumes},
		"token":             {volume(object{"projected": object{"sources": []any{object{"serviceAccountToken": object{"path": "token"}}}}}), volumes},
		"config map":        {volume(object{"configMap": object{"name": "c"}}), volumes},
		"escalation":        {set("allowPrivilegeEscalation", true, "containers", "securityContext"), privileged},
		"privileged init":   {set("securityContext", object{"privileged": true}, "initContainers"), privileged},
		"host network":      {set("hostNetwork", true), "no namespace with their node"},
		"host processes":    {set("hostPID", true), "no namespace with their node"},
		"other account":     {set("serviceAccountName", "default"), "not the one of sandboxes"},
		"mounted token":     {set("automountServiceAccountToken", true), "automountServiceAccountToken must be false"},
		"restarted":         {set("restartPolicy", "Always"), "restartPolicy must be Never"},
		"other registry":    {set("image", "docker.io/library/debian:12", "containers"), "none of registries"},
		"registry of guest": {set("image", "ghcr.io/atoll-run.evil/guest", "initContainers"), "none of registries"},
		"runtime class":     {set("runtimeClassName", runtimeClass), "not one of runtimeClasses"},
		"env from a secret": {set("envFrom", []any{object{"secretRef": object{"name": "s"}}}, "containers"), secrets},
		"value of a secret": {set("env", []any{object{"name": "S", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "k"}}}}, "containers"), secrets},
		"too much memory":   {set("resources", object{"limits": object{"memory": "1Ti"}}, "containers"), "maximum memory usage"},
	}
}
