package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// deadlineAfter is how long after its age limit the cluster ends a pod, in seconds: the
// gateway removes it long before, unless every gateway is gone.
const deadlineAfter = 60 * 60

// deadlineOf is activeDeadlineSeconds of a pod; nil if its sandbox may get as old as it does.
// The age of one that waits in a pool begins when it is claimed: it has the time twice.
func deadlineOf(spec *sandbox.Spec) *int64 {
	if spec.MaxAgeSec <= 0 {
		return nil
	}
	age := spec.MaxAgeSec
	if spec.Kind == sandbox.KindPool {
		age *= 2
	}
	return new(age + deadlineAfter)
}

const (
	// endBefore is how long before its deadline a pod is ended in order that has the only copy
	// of files: at its deadline the cluster would end it without them. A sandbox that is not in
	// use was removed an hour before.
	endBefore = 10 * time.Minute
	// endAgainAfter is how long a process waits before it tries again to end such a pod.
	endAgainAfter = 20 * time.Second
	// leastGrace is the time below which it does not try: the cluster is about to.
	leastGrace = 2 * lastMoment
)

// deadlineTime is when the cluster ends a pod because of its age; zero if it does not.
func deadlineTime(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

// planEnd plans the end of a pod before its deadline.
func (r *Runtime) planEnd(pod *corev1.Pod) {
	deadline := deadlineTime(pod)
	if deadline.IsZero() {
		return
	}
	r.terminations.plan(pod.UID, deadline.Add(-endBefore), func(ctx context.Context) {
		for ctx.Err() == nil {
			err := r.endEarly(ctx, pod, deadline)
			if err == nil {
				return
			}
			r.logger.Warn("a pod near its deadline was not ended in order", "pod", pod.Name, "error", err)
			_ = pause(ctx, endAgainAfter)
		}
	})
}

// endEarly deletes a pod with files that are to be brought home, with most of the time until
// its deadline for that: what follows is the same as when the cluster ends it.
func (r *Runtime) endEarly(ctx context.Context, seen *corev1.Pod, deadline time.Time) error {
	i := &Instance{runtime: r, name: seen.Annotations[noteName]}
	if err := i.read(ctx); err != nil {
		return err
	}
	pod, grace := i.currentPod(), time.Until(deadline)*4/5
	if pod == nil || pod.UID != seen.UID || pod.DeletionTimestamp != nil || i.current().Annotations[notePhase] != phaseRunning || !keepsAny(i.current()) || grace < leastGrace {
		return nil
	}
	if err := i.keepFilesFor(ctx, grace); err != nil {
		return err
	}
	why := fmt.Sprintf("its pod was ended at its age limit, %v before its deadline (activeDeadlineSeconds)", time.Until(deadline).Round(time.Second))
	if err := i.noteLease(ctx, func(l *coordinationv1.Lease) { l.Annotations[noteCause] = why }); err != nil {
		return err
	}
	c, err := r.cluster()
	if err != nil {
		return err
	}
	r.logger.Info("a pod is ended before its deadline", "sandbox", i.name, "pod", pod.Name, "deadline", deadline)
	return c.remove(ctx, pods, pod.Name, pod.UID, graceOf(grace))
}

// keepFilesFor makes the guest serve its files for so long after the signal that ends it.
func (i *Instance) keepFilesFor(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	m := i.wire(i.Dial)
	defer m.Close()
	if err := m.KeepFiles(ctx, wait); err != nil && !errors.Is(err, machine.ErrUnsupported) {
		return err
	}
	return nil
}
