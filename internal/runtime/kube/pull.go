package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A kubelet reports that a pull has failed, but no progress: a slow pull cannot be told from one
// that stalls. Both end with kubernetes.startTimeoutSec. The kubelet goes
// on with a pull whose pod is gone.

// pullNoticeAfter is how long a pod may not run until tellPull logs that its image is being
// pulled.
const pullNoticeAfter = 5 * time.Second

// tellPull logs that an image is being pulled, if one is.
func (r *Runtime) tellPull(ctx context.Context, c *cluster, pod *corev1.Pod) {
	if image := c.pulling(ctx, pod); image != "" {
		r.logger.Warn("the node is pulling an image", "image", image, "node", pod.Spec.NodeName, "limit", r.runTimeout())
	}
}

// pulling returns the image that a kubelet is pulling for the pod, by its events; "" if it
// is none, or that is not known.
func (c *cluster) pulling(ctx context.Context, pod *corev1.Pod) string {
	found, err := list[corev1.Event](ctx, c, events, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return ""
	}
	return pulledNow(found)
}

// pulledNow returns an image of which events say that it is being pulled, and not that it
// was.
func pulledNow(found []corev1.Event) string {
	done := map[string]bool{}
	for _, event := range found {
		if event.Reason == "Pulled" {
			done[quotedIn(event.Message)] = true
		}
	}
	for _, event := range found {
		if image := quotedIn(event.Message); event.Reason == "Pulling" && !done[image] {
			return short(image)
		}
	}
	return ""
}

// quotedIn returns what a text has between its first two quotation marks.
func quotedIn(text string) string {
	_, after, _ := strings.Cut(text, `"`)
	inside, _, _ := strings.Cut(after, `"`)
	return inside
}

func stillPulling(image string, after time.Duration) error {
	return errhint.With(fmt.Errorf("the pod does not run after %v: its node is still pulling image %s: %w", after, image, sandbox.ErrUnavailable),
		"try again: the node goes on pulling; or raise kubernetes.startTimeoutSec, or check that the registry answers the nodes")
}
