package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.Examiner = (*Runtime)(nil)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// podSecurity is the label of a namespace with the level that its pods are held to.
const podSecurity = "pod-security.kubernetes.io/enforce"

// Examine returns what the cluster has and lacks for a sandbox of spec: whether it
// answers, what these credentials may do, what refuses the pod, and, if nothing did, what
// a pod of a sandbox finds out that is made for that.
func (r *Runtime) Examine(ctx context.Context, spec *sandbox.Spec) []sandbox.Finding {
	c, err := r.cluster()
	if err != nil {
		return []sandbox.Finding{notFine("cluster", err)}
	}
	version, err := c.version(ctx)
	if err != nil {
		return []sandbox.Finding{notFine("cluster", err)}
	}
	found := []sandbox.Finding{fine("cluster", "Kubernetes %s at %s, namespace %s", version, c.config.Host, c.namespace)}
	found = append(found, r.examineProvider(ctx, c)...)
	found = append(found, r.examineRights(ctx, c)...)
	found = append(found, c.examineLevel(ctx)...)
	found = append(found, r.examineGaps(spec)...)
	if anyFailed(found) {
		return found
	}
	if err := r.dryRun(ctx, c, spec); err != nil {
		return append(found, notFine("pod", err))
	}
	return append(found, r.trial(ctx, spec)...)
}

func fine(name, format string, args ...any) sandbox.Finding {
	return sandbox.Finding{Name: name, Level: sandbox.FindingOK, Detail: fmt.Sprintf(format, args...)}
}

func notFine(name string, err error) sandbox.Finding {
	return sandbox.Finding{Name: name, Level: sandbox.FindingFailed, Detail: err.Error(), Remedy: errhint.Of(err)}
}

func anyFailed(found []sandbox.Finding) bool {
	for _, f := range found {
		if f.Level == sandbox.FindingFailed {
			return true
		}
	}
	return false
}

// version asks the API server for its version, which needs no rights.
func (c *cluster) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	asked, err := rest.NewRequestWithClient(base, "", rest.ClientContentConfig{}, client).Verb("GET").AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", explain(err)
	}
	var answer struct{ GitVersion string }
	if err := json.Unmarshal(asked, &answer); err != nil || answer.GitVersion == "" {
		return "", errhint.With(fmt.Errorf("%s answers, but not as an API server: %.60q: %w", c.config.Host, asked, sandbox.ErrUnavailable), "check kubernetes.kubeconfig and kubernetes.context")
	}
	return short(answer.GitVersion), nil
}

// examineLevel says which level of Pod Security the namespace has, if these credentials
// may read it: the gateway's own may not.
func (c *cluster) examineLevel(ctx context.Context) []sandbox.Finding {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	space, err := c.api.Resource(namespaces).Get(ctx, c.namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return []sandbox.Finding{notFine("namespace", explain(err))}
	}
	level := space.GetLabels()[podSecurity]
	if level == "restricted" {
		return []sandbox.Finding{fine("pod security", "level restricted")}
	}
	if level == "" {
		level = "none"
	}
	return []sandbox.Finding{{
		Name: "pod security", Level: sandbox.FindingWarning, Detail: "level " + level + ": whoever may create pods in the namespace may create more than sandboxes",
		Remedy: "kubectl label --overwrite namespace " + c.namespace + " " + podSecurity + "=restricted",
	}}
}

// examineGaps says what pods cannot enforce of spec, and what keeps them from the network.
func (r *Runtime) examineGaps(spec *sandbox.Spec) (found []sandbox.Finding) {
	for _, gap := range r.specGaps(spec) {
		found = append(found, sandbox.Finding{Name: gap.Field, Level: sandbox.FindingFailed, Detail: gap.Reason, Remedy: gap.Remedy})
	}
	if r.settings.PodPidsLimit == 0 {
		found = append(found, sandbox.Finding{
			Name: "processes", Level: sandbox.FindingWarning, Detail: "kubernetes.podPidsLimit does not say that the kubelets limit the processes of a pod",
			Remedy: "set podPidsLimit of the kubelets, and kubernetes.podPidsLimit to the same number",
		})
	}
	return found
}

// dryRun asks the API server whether it would take the pod of a sandbox: quota, limits,
// Pod Security, policies, webhooks, the service account and the classes are asked.
func (r *Runtime) dryRun(ctx context.Context, c *cluster, spec *sandbox.Spec) error {
	if err := c.checkRuntimeClass(ctx, r.settings.RuntimeClass); err != nil {
		return err
	}
	settings := r.settings
	settings.WorkspaceVolume = nil // the claim of a sandbox is made with it
	pod, err := template(spec, &settings)
	if err != nil {
		return err
	}
	pod.ObjectMeta = metav1.ObjectMeta{GenerateName: namePrefix, Labels: r.labels(spec.Name)}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = c.of(pods).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return explain(err)
}
