package kube

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// right is what one Role rule of ours allows.
type right struct {
	group, resource, subresource string
	verbs                        []string
}

// rights are all that the runtime does with the namespace, as deploy/kubernetes allows it.
func rights(volumes bool) []right {
	all := []right{
		{resource: "pods", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{resource: "pods", subresource: "exec", verbs: []string{"get", "create"}},
		{resource: "events", verbs: []string{"list", "watch"}},
		{group: "coordination.k8s.io", resource: "leases", verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
	}
	if volumes {
		all = append(all, right{resource: "persistentvolumeclaims", verbs: []string{"get", "list", "create", "delete"}})
	}
	return all
}

func (r *right) String() string {
	if r.subresource != "" {
		return r.resource + "/" + r.subresource
	}
	return r.resource
}

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// examineRights names each verb that these credentials lack.
func (r *Runtime) examineRights(ctx context.Context, c *cluster) []sandbox.Finding {
	var found []sandbox.Finding
	asked, needed := 0, rights(r.settings.WorkspaceVolume != nil)
	if r.usesAgentSandbox() {
		needed = append(needed, agentSandboxRights()...)
	}
	for _, right := range needed {
		var missing []string
		for _, verb := range right.verbs {
			asked++
			allowed, err := c.may(ctx, &right, verb)
			if err != nil {
				return append(found, notFine("rights", err))
			}
			if !allowed {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			found = append(found, missingRight(&right, missing, c.namespace))
		}
	}
	if len(found) == 0 {
		found = append(found, fine("rights", "all %d verbs in namespace %s that sandboxes take", asked, c.namespace))
	}
	return found
}

func missingRight(r *right, verbs []string, namespace string) sandbox.Finding {
	return sandbox.Finding{
		Name: "rights: " + r.String(), Level: sandbox.FindingFailed,
		Detail: fmt.Sprintf("these credentials may not %s %s in namespace %s", strings.Join(verbs, ", "), r, namespace),
		Remedy: fmt.Sprintf("allow it with a Role of the namespace: verbs %s on %s (deploy/kubernetes has the whole Role)", strings.Join(verbs, ", "), r),
	}
}

// may asks the API server whether these credentials have a verb.
func (c *cluster) may(ctx context.Context, r *right, verb string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Verb: verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
		}},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, err
	}
	answer, err := c.api.Resource(accessReviews).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return false, explain(err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}
