package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// callTimeout bounds one call of the API server.
const callTimeout = 10 * time.Second

// resourceKind names a kind of objects.
type resourceKind = schema.GroupVersionResource

// The kinds of objects that are used.
var (
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events         = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	claims         = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	leases         = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	runtimeClasses = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
)

// cluster is a connection to an API server, for one namespace.
type cluster struct {
	config    *rest.Config
	api       dynamic.Interface
	namespace string
}

// silence keeps the libraries from writing to standard error: what they report there is in
// the errors that we get, too.
var silence = sync.OnceFunc(func() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) })

// connect reads the credentials. It does not call the API server.
func connect(s *kubekeys.Settings) (*cluster, error) {
	silence()
	config, err := credentials(s)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's own fairness decides
	config.UserAgent = "atoll"
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &cluster{config: config, api: api, namespace: s.Namespace}, nil
}

// credentials returns those of the kubeconfig, else those of the pod that this process
// runs in.
func credentials(s *kubekeys.Settings) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: s.Context}).ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case errors.Is(err, fs.ErrNotExist) || clientcmd.IsEmptyConfig(err):
		return nil, errhint.With(fmt.Errorf("there is no kubeconfig: %w: %w", err, sandbox.ErrUnavailable),
			"set kubernetes.kubeconfig, or KUBECONFIG, to a file with a cluster and credentials")
	}
	return nil, errhint.With(fmt.Errorf("kubeconfig: %w: %w", err, sandbox.ErrUnavailable), "check kubernetes.kubeconfig and kubernetes.context with `kubectl config get-contexts`")
}

func (c *cluster) of(kind resourceKind) dynamic.ResourceInterface {
	return c.api.Resource(kind).Namespace(c.namespace)
}

// get reads one object.
func (c *cluster) get(ctx context.Context, kind resourceKind, name string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := c.of(kind).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return explain(err)
	}
	return fill(found, into)
}

// create makes an object, and fills it with the answer.
func (c *cluster) create(ctx context.Context, kind resourceKind, object any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	made, err := c.of(kind).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return explain(err)
	}
	return fill(made, object)
}

// update replaces an object, unless it changed since it was read.
func (c *cluster) update(ctx context.Context, kind resourceKind, object any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	changed, err := c.of(kind).Update(ctx, &unstructured.Unstructured{Object: fields}, metav1.UpdateOptions{})
	if err != nil {
		return explain(err)
	}
	return fill(changed, object)
}

// list returns the objects with a label.
func list[T any](ctx context.Context, c *cluster, kind resourceKind, options metav1.ListOptions) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := c.of(kind).List(ctx, options)
	if err != nil {
		return nil, explain(err)
	}
	all := make([]T, len(found.Items))
	for i := range found.Items {
		if err := fill(&found.Items[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fill reads an object into its type.
func fill(from *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("the API server's answer: %w", err)
	}
	return nil
}

// execURL is where a program is started in the container of a pod.
func (c *cluster) execURL(pod string, argv []string) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	query := url.Values{"container": {containerName}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}, "command": argv}
	target := base.JoinPath("api", "v1", "namespaces", c.namespace, "pods", pod, "exec")
	target.RawQuery = query.Encode()
	return target, nil
}

// isOver reports whether no container of the pod will run any more.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp != nil
}
