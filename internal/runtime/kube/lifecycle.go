package kube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// pollInterval is how often we look whether a pod is gone.
	pollInterval = 100 * time.Millisecond
	// killedSaveTimeout is how long copies may take that are brought back from a sandbox
	// that is to be killed.
	killedSaveTimeout = 5 * time.Second
)

// Start makes the sandbox run: a new pod if it has none, with copies of the directories
// that belong to it.
func (i *Instance) Start(ctx context.Context) error {
	if err := i.start(ctx); err != nil {
		return fmt.Errorf("sandbox %q: start: %w", i.name, err)
	}
	return nil
}

func (i *Instance) start(ctx context.Context) error {
	state, err := i.State(ctx)
	switch {
	case err != nil:
		return err
	case state == sandbox.StateRunning:
		return nil
	case state == sandbox.StateDead:
		return fmt.Errorf("its pod has ended: %w", sandbox.ErrNotRunning)
	}
	end, err := i.runtime.startTurn(ctx)
	if err != nil {
		return err
	}
	defer end()
	return i.makeReady(ctx)
}

// makeReady makes a pod unless there is one, and sends the copies into it.
func (i *Instance) makeReady(ctx context.Context) error {
	if i.current().Annotations[notePhase] != phaseCreated { // stopped, or left by a process that ended
		if err := i.remake(ctx); err != nil {
			return errors.Join(err, i.endPodNow(ctx))
		}
	}
	if err := i.checkNetwork(ctx); err != nil {
		return errors.Join(err, i.endPodNow(ctx))
	}
	if err := i.copyIn(ctx); err != nil {
		return errors.Join(err, i.endPodNow(ctx))
	}
	return i.advance(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[notePhase] = phaseRunning
		setFilled(l)
	})
}

// remake makes another pod when those before are gone.
func (i *Instance) remake(ctx context.Context) error {
	if err := i.endPods(ctx, 0); err != nil {
		return err
	}
	return i.makePod(ctx, &source{})
}

// Stop brings the copies back and ends the pod. What is in its memory and on its own
// root is gone.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	if err := i.halt(ctx, grace, true); err != nil {
		return fmt.Errorf("sandbox %q: stop: %w", i.name, err)
	}
	return nil
}

// Kill ends the pod, whatever the guest does. It tries to bring the copies back first.
func (i *Instance) Kill(ctx context.Context) error {
	if err := i.halt(ctx, 0, false); err != nil {
		return fmt.Errorf("sandbox %q: kill: %w", i.name, err)
	}
	return nil
}

func (i *Instance) halt(ctx context.Context, grace time.Duration, orderly bool) error {
	state, err := i.State(ctx)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil
	case err != nil:
		return err
	case state == sandbox.StateStopped:
		return nil
	}
	if state == sandbox.StateRunning {
		if err := i.save(ctx, orderly); err != nil {
			return err
		}
	}
	if err := i.endPods(ctx, grace); err != nil {
		return err
	}
	return i.noteLease(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[notePhase] = phaseStopped
		delete(l.Annotations, noteEnded)
	})
}

// save brings the copies back. Unless it is done in order, a sandbox that does not answer
// is no error.
func (i *Instance) save(ctx context.Context, orderly bool) error {
	if !orderly {
		limited, cancel := context.WithTimeout(ctx, killedSaveTimeout)
		defer cancel()
		ctx = limited
	}
	err := i.copyOut(ctx)
	if err != nil && !orderly {
		i.runtime.logger.Warn("changes of a sandbox were not brought back", "sandbox", i.name, "error", err)
		return nil
	}
	return err
}

// Remove takes the sandbox away, and returns when its pod is gone. Unless Save was called, what
// changed in its copies is brought back if that takes no longer than killedSaveTimeout.
func (i *Instance) Remove(ctx context.Context) error {
	state, err := i.State(ctx)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	if err == nil && state == sandbox.StateRunning && i.current().Annotations[notePhase] != phaseEnding {
		err = i.save(ctx, false)
	}
	if err == nil {
		err = i.discard(ctx)
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: remove: %w", i.name, err)
	}
	return nil
}

// discard removes the pods, then the Lease, which frees the name.
func (i *Instance) discard(ctx context.Context) error {
	if err := i.endPods(ctx, graceSeconds*time.Second); err != nil {
		return err
	}
	return i.removeLease(ctx)
}

// removeLease removes the Lease, with a claim that was made for it and never filled.
func (i *Instance) removeLease(ctx context.Context) error {
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	lease := i.current()
	if err := i.discardVolume(ctx, c); err != nil {
		return err
	}
	if err := c.remove(ctx, leases, lease.Name, lease.UID, 0); err != nil {
		return err
	}
	i.runtime.forgetEpoch(lease)
	return nil
}

// endPodNow ends the pods in time of its own.
func (i *Instance) endPodNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Join(i.endPods(ctx, 0), i.advance(ctx, func(l *coordinationv1.Lease) { l.Annotations[notePhase] = phaseStopped }))
}

// endPods deletes every pod of the sandbox and waits until they are gone: a node has
// ended their processes then, or they are abandoned.
func (i *Instance) endPods(ctx context.Context, grace time.Duration) error {
	i.awaitHome(ctx)
	if err := i.releaseClaim(ctx, graceOf(grace)); err != nil {
		return err
	}
	return i.runtime.endPods(ctx, i.name, grace)
}

func (r *Runtime) endPods(ctx context.Context, name string, grace time.Duration) error {
	c, err := r.cluster()
	if err != nil {
		return err
	}
	seconds, began := graceOf(grace), time.Now()
	for waitsFor := (*corev1.Pod)(nil); ; {
		left, err := list[corev1.Pod](ctx, c, pods, metav1.ListOptions{LabelSelector: r.selectOne(name)})
		if err != nil && waitsFor != nil && ctx.Err() != nil {
			err = notGone(waitsFor.Name, ctx.Err())
		}
		if err == nil {
			first := waitsFor == nil
			waitsFor, err = r.deletePods(ctx, c, left, seconds, first || time.Since(began) > unstartedTimeout)
		}
		if err != nil || waitsFor == nil {
			return err
		}
		if c.awaitChange(ctx, pods, waitsFor.Name, waitsFor.ResourceVersion) != nil {
			_ = pause(ctx, pollInterval)
		}
		if ctx.Err() != nil {
			return notGone(waitsFor.Name, ctx.Err())
		}
	}
}

// deletePods deletes those of the pods that are not being deleted yet, and returns one whose
// end has to be waited for; nil if there is none. With leave it does not wait for those that
// never ran.
func (r *Runtime) deletePods(ctx context.Context, c *cluster, left []corev1.Pod, seconds int64, leave bool) (waitsFor *corev1.Pod, err error) {
	for n := range left {
		pod := &left[n]
		r.dropSession(string(pod.UID))
		r.terminations.setOurs(pod.UID)
		if abandoned(pod) || leave && unstarted(pod) {
			continue
		}
		if err := heldVolume(pod); err != nil {
			return nil, err
		}
		if pod.DeletionTimestamp == nil {
			if err := c.remove(ctx, pods, pod.Name, pod.UID, seconds); err != nil {
				return nil, err
			}
		}
		waitsFor = pod
	}
	return waitsFor, nil
}

// graceOf returns a grace in seconds. One of 0 would remove the object before the processes:
// 1 is the least.
func graceOf(grace time.Duration) int64 {
	return max(1, int64(math.Ceil(grace.Seconds())))
}

func notGone(pod string, err error) error {
	return errhint.With(fmt.Errorf("pod %s is not gone: %w", pod, err), "look at what holds it: kubectl get pod -o yaml; if its node is lost, delete the Node, or taint it out-of-service")
}

// Sweep ends the pods of a sandbox whose Lease is gone, and removes its volume if the
// workspace was removed for good.
func (r *Runtime) Sweep(ctx context.Context, name string) error {
	if err := r.endPods(ctx, name, 0); err != nil {
		return fmt.Errorf("sandbox %q: %w", name, err)
	}
	if err := r.sweepVolume(ctx, name); err != nil {
		return fmt.Errorf("sandbox %q: %w", name, err)
	}
	return nil
}

// remove deletes the object with that UID; nil if it is gone.
func (c *cluster) remove(ctx context.Context, kind resourceKind, name string, uid types.UID, grace int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.of(kind).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return explain(err)
}
