package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watchAgainAfter is how long a process waits before it watches again after an error.
const watchAgainAfter = 2 * time.Second

// watchTerminations begins, once, to look for pods of this installation that are being
// deleted.
func (r *Runtime) watchTerminations(c *cluster) {
	r.terminations.watch.Do(func() {
		r.terminations.work.Go(func() {
			for ctx := r.terminations.ctx; ctx.Err() == nil; {
				if err := r.watchPods(ctx, c); err != nil && ctx.Err() == nil {
					r.logger.Info("the watch of pods has ended", "error", err)
				}
				_ = pause(ctx, watchAgainAfter)
			}
		})
	})
}

// watchPods follows the pods of this installation until the watch ends.
func (r *Runtime) watchPods(ctx context.Context, c *cluster) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	found, err := c.of(pods).List(limited, metav1.ListOptions{LabelSelector: r.selectAll()})
	cancel()
	if err != nil {
		return explain(err)
	}
	for n := range found.Items {
		r.podChanged(&found.Items[n])
	}
	changes, err := c.of(pods).Watch(ctx, metav1.ListOptions{LabelSelector: r.selectAll(), ResourceVersion: found.GetResourceVersion()})
	if err != nil {
		return explain(err)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error || !ok:
			return nil
		case event.Type == watch.Deleted:
			r.terminations.forget(object.GetUID())
		default:
			r.podChanged(object)
		}
	}
	return nil
}

// podChanged brings the copies of a pod home that the cluster ends, or plans to before it
// does.
func (r *Runtime) podChanged(object *unstructured.Unstructured) {
	pod := new(corev1.Pod)
	if fill(object, pod) != nil {
		return
	}
	if pod.DeletionTimestamp == nil {
		r.planEnd(pod)
		return
	}
	r.terminations.work.Go(func() {
		i := &Instance{runtime: r, name: pod.Annotations[noteName]}
		if err := i.read(r.terminations.ctx); err != nil {
			r.logger.Info("a pod that is being deleted has no Lease of ours", "pod", pod.Name, "error", err)
			return
		}
		i.awaitHome(r.terminations.ctx)
	})
}
