package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// With kubernetes.provider agent-sandbox the controller of kubernetes-sigs/agent-sandbox
// keeps the pods of pools ready. A pool is a SandboxTemplate, which has the pod of Atoll's
// own template, and a SandboxWarmPool with the pool's size. A new sandbox takes its name by
// its Lease as ever; its pod comes by a SandboxClaim, which the Lease owns, instead of being
// made. The controller makes another pod when one of a claim is deleted, so the claim goes
// first, and a pod with another UID than the Lease has is none of the sandbox.

// The kinds of objects of agent-sandbox, and their version.
const (
	agentSandboxGroup   = "extensions.agents.x-k8s.io"
	agentSandboxVersion = "v1beta1"
)

var (
	sandboxTemplates = agentSandboxKind("sandboxtemplates")
	sandboxWarmPools = agentSandboxKind("sandboxwarmpools")
	sandboxClaims    = agentSandboxKind("sandboxclaims")
)

func agentSandboxKind(resource string) resourceKind {
	return schema.GroupVersionResource{Group: agentSandboxGroup, Version: agentSandboxVersion, Resource: resource}
}

// agentSandboxRights are what the runtime does with those objects, as deploy/kubernetes
// allows it.
func agentSandboxRights() []right {
	return []right{
		{group: agentSandboxGroup, resource: "sandboxtemplates", verbs: []string{"list", "create", "delete"}},
		{group: agentSandboxGroup, resource: "sandboxwarmpools", verbs: []string{"get", "list", "create", "patch", "delete"}},
		{group: agentSandboxGroup, resource: "sandboxclaims", verbs: []string{"get", "list", "watch", "create", "delete"}},
	}
}

// usesAgentSandbox reports whether agent-sandbox keeps the pods of pools.
func (r *Runtime) usesAgentSandbox() bool {
	return r.settings.Provider == kubekeys.ProviderAgentSandbox
}

// checkProvider asks, until it was found once, for what kubernetes.provider needs.
func (r *Runtime) checkProvider(ctx context.Context, c *cluster) error {
	if !r.usesAgentSandbox() || r.hasProvider.Load() {
		return nil
	}
	if err := c.checkAgentSandbox(ctx); err != nil {
		return err
	}
	r.hasProvider.Store(true)
	return nil
}

// checkAgentSandbox names the CustomResourceDefinitions of agent-sandbox that the cluster
// has not.
func (c *cluster) checkAgentSandbox(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var missing []string
	for _, kind := range []resourceKind{sandboxTemplates, sandboxWarmPools, sandboxClaims} {
		_, err := c.of(kind).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, kind.GroupResource().String())
		case err != nil:
			return explain(err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errhint.With(fmt.Errorf("kubernetes.provider is agent-sandbox, and the cluster has no CustomResourceDefinition %s with version %s: %w", strings.Join(missing, ", "), agentSandboxVersion, sandbox.ErrUnsupported),
		"install agent-sandbox with its extensions (manifest.yaml and extensions.yaml of a release from v1.0 on), or set kubernetes.provider to pods")
}

// examineProvider says whether the cluster has what kubernetes.provider needs.
func (r *Runtime) examineProvider(ctx context.Context, c *cluster) []sandbox.Finding {
	if !r.usesAgentSandbox() {
		return nil
	}
	if err := c.checkAgentSandbox(ctx); err != nil {
		return []sandbox.Finding{notFine("provider", err)}
	}
	return []sandbox.Finding{fine("provider", "agent-sandbox: the cluster has its CustomResourceDefinitions, with version %s", agentSandboxVersion)}
}
