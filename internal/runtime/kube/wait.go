package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// rereadInterval is how often a pod is read again, whatever its watch says.
	rereadInterval = 2 * time.Second
	// unschedulableTimeout is how long a pod may be refused by every node: a scheduler
	// that is behind says so of nodes that have just become free.
	unschedulableTimeout = 6 * time.Second
	// maxReason bounds the cluster's own words in an error.
	maxReason = 1000
)

// awaitRunning waits until the pod's container runs, and explains why it does not.
func (r *Runtime) awaitRunning(ctx context.Context, c *cluster, pod *corev1.Pod) (*corev1.Pod, error) {
	limited, cancel := context.WithTimeout(ctx, r.runTimeout())
	defer cancel()
	began, told := time.Now(), false
	for {
		now := new(corev1.Pod)
		err := c.get(limited, pods, pod.Name, now)
		if err == nil && now.UID != pod.UID {
			err = fmt.Errorf("pod %s was replaced: %w", pod.Name, sandbox.ErrNotFound)
		}
		if err == nil {
			done, why := judge(now, time.Since(began))
			if done || why != nil {
				return now, why
			}
			if pod = now; !told && time.Since(began) > pullNoticeAfter {
				told = true
				r.tellPull(limited, c, pod)
			}
			err = c.awaitChange(limited, pods, now.Name, now.ResourceVersion)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return nil, r.notInTime(context.WithoutCancel(ctx), c, pod)
		case isPassing(err): // the pod may be well
			_ = pause(limited, pollInterval)
		case err != nil:
			return nil, err
		}
	}
}

// awaitChange returns when an object has another version than that, or after
// rereadInterval.
func (c *cluster) awaitChange(ctx context.Context, kind resourceKind, name, version string) error {
	ctx, cancel := context.WithTimeout(ctx, rereadInterval)
	defer cancel()
	changes, err := c.of(kind).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return explain(err)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || ok && object.GetResourceVersion() != version {
			return nil
		}
	}
	return pause(context.WithoutCancel(ctx), pollInterval)
}

// judge reports whether the pod runs, or why it never will.
func judge(pod *corev1.Pod, waited time.Duration) (running bool, why error) {
	if isOver(pod) {
		return false, errhint.With(fmt.Errorf("the pod has ended: %s: %w", endOf(pod), sandbox.ErrUnavailable), "look at it: kubectl describe pod, and the logs of its containers")
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil {
			if err := stuck(&status, waiting); err != nil {
				return false, err
			}
		}
		if status.Name == containerName && status.State.Running != nil {
			return true, nil
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && waited > schedulingTimeout(condition.Message) {
			return false, unschedulable(condition.Message)
		}
	}
	return false, nil
}

func unschedulable(message string) error {
	return errhint.With(fmt.Errorf("no node takes the pod: %s: %w", short(message), sandbox.ErrUnavailable),
		"add nodes, remove sandboxes (`atoll sandbox prune`), or change docker.memory, docker.cpus, kubernetes.nodeSelector or kubernetes.tolerations")
}

// stuck explains a container that waits for something that does not come.
func stuck(status *corev1.ContainerStatus, waiting *corev1.ContainerStateWaiting) error {
	reason := waiting.Reason + ": " + short(waiting.Message)
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return imageProblem(status, reason)
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "PostStartHookError":
		return errhint.With(fmt.Errorf("container %s: %s: %w", status.Name, reason, sandbox.ErrUnsupported), containerRemedy(reason))
	}
	return nil
}

func imageProblem(status *corev1.ContainerStatus, reason string) error {
	key := "sandbox.docker.image"
	if status.Name == installName {
		key = "kubernetes.guestImage"
	}
	if strings.HasPrefix(reason, "ErrImageNeverPull") {
		return errhint.With(imageMissing{status.Image, reason}, "load the image onto every node, let the nodes pull it (kubernetes.imagePullPolicy: IfNotPresent), or change "+key)
	}
	return errhint.With(imageMissing{status.Image, reason}, "push the image to a registry that the nodes reach, set kubernetes.imagePullSecrets if it wants credentials, or change "+key)
}

// containerRemedy is what to do about a container that a node cannot make.
func containerRemedy(reason string) string {
	switch {
	case strings.Contains(reason, "seccomp"):
		return "install the profile on the nodes (deploy/kubernetes has a DaemonSet), or change kubernetes.seccompProfile"
	case strings.Contains(reason, "runAsNonRoot"), strings.Contains(reason, "non-root"):
		return "set docker.user to a number above 0"
	case strings.Contains(reason, "no such file"), strings.Contains(reason, "executable file not found"):
		return "check that kubernetes.guestImage has the guest at /guest, for the nodes' architecture"
	}
	return "look at it: kubectl get events in the namespace"
}

// endOf is why a pod has ended, in the cluster's own words.
func endOf(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	if pod.DeletionTimestamp != nil {
		words = append(words, "it is being deleted")
	}
	for _, text := range []string{pod.Status.Reason, pod.Status.Message} {
		if text != "" {
			words = append(words, text)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			words = append(words, fmt.Sprintf("container %s: exit code %d, %s", status.Name, ended.ExitCode, ended.Reason), ended.Message)
		}
	}
	return short(strings.Join(words, ": "))
}

// notInTime explains a pod that is not running after the start's time limit.
func (r *Runtime) notInTime(ctx context.Context, c *cluster, pod *corev1.Pod) error {
	if _, why := judge(pod, volumeTimeout+1); why != nil {
		return why
	}
	if image := c.pulling(ctx, pod); image != "" {
		return stillPulling(image, r.runTimeout())
	}
	reason := c.lastWarning(ctx, pod)
	hint := "look at it: kubectl get events in the namespace; or raise kubernetes.startTimeoutSec"
	if strings.Contains(reason, "RuntimeHandler") || strings.Contains(reason, "runtime handler") || strings.Contains(reason, "no runtime for") {
		hint = "install the runtime of kubernetes.runtimeClass on the nodes, or change it"
	}
	return errhint.With(fmt.Errorf("the pod does not run after %v: %s: %w", r.runTimeout(), reason, sandbox.ErrUnavailable), hint)
}

// lastWarning is the newest warning about a pod, or the newest event if there is none, in the
// cluster's own words.
func (c *cluster) lastWarning(ctx context.Context, pod *corev1.Pod) string {
	found, err := list[corev1.Event](ctx, c, events, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return "its events could not be read: " + short(err.Error())
	}
	slices.SortFunc(found, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, event := range slices.Backward(found) {
		if event.Type == corev1.EventTypeWarning {
			return event.Reason + ": " + short(event.Message)
		}
	}
	if len(found) > 0 {
		last := found[len(found)-1]
		return "it is " + string(pod.Status.Phase) + ", and the last event is " + last.Reason + ": " + short(last.Message)
	}
	return "it is " + string(pod.Status.Phase) + ", and the cluster gives no reason"
}

// short bounds and cleans words of the cluster, which may quote what is in an image.
func short(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.TrimSpace(clean[:min(len(clean), maxReason)])
}

// checkRunning returns an error if the sandbox does not run.
func (i *Instance) checkRunning(ctx context.Context) (*corev1.Pod, error) {
	if _, err := i.State(ctx); err != nil {
		return nil, err
	}
	pod := i.currentPod()
	switch {
	case pod == nil:
		return nil, endedBefore(i.current())
	case isOver(pod) && nodeLost(pod):
		return nil, fmt.Errorf("%w: %w: %s", sandbox.ErrNotRunning, lostNode(pod), endOf(pod))
	case isOver(pod):
		return nil, fmt.Errorf("%w: %s", sandbox.ErrNotRunning, i.whyOver(ctx, pod))
	case nodeLost(pod): // which may come back
		return nil, fmt.Errorf("%w: %w", machine.ErrTransport, lostNode(pod))
	}
	return pod, nil
}

// whyOver returns why a pod has ended. Of one that was evicted and ended in time the
// kubelet may say only in an event why.
func (i *Instance) whyOver(ctx context.Context, pod *corev1.Pod) string {
	why := endOf(pod)
	c, err := i.runtime.cluster()
	if err != nil || pod.Status.Message != "" {
		return why
	}
	return why + ": " + c.lastWarning(ctx, pod)
}
