package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A pod that the cluster ends, as by an eviction, a drain or a preemption, has some time:
// its guest ends the commands and serves files until they were fetched. The process that
// finds the pod being deleted fetches them, as at a removal.

// lastMoment is what is left of a pod's time when no more is fetched.
const lastMoment = time.Second

// awaitHome returns when the copies of a pod that the cluster ends are home, or cannot be
// brought.
func (i *Instance) awaitHome(ctx context.Context) {
	pod := i.currentPod()
	if pod == nil || !i.hasCopies(pod) {
		return
	}
	home, first := i.runtime.terminations.begin(pod.UID)
	if first {
		i.bringHome(ctx, pod, home)
	}
	if home == nil {
		return
	}
	select {
	case <-home:
	case <-ctx.Done():
	}
}

// hasCopies reports whether the cluster ends the pod while it has the only copy of files
// that are to be brought back, on a node that answers.
func (i *Instance) hasCopies(pod *corev1.Pod) bool {
	lease := i.current()
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return pod.DeletionTimestamp != nil && !over && !nodeLost(pod) && lease.Annotations[notePhase] == phaseRunning && lease.Annotations[notePod] == pod.Name && keepsAny(lease)
}

// keepsAny reports whether a sandbox has copies that are brought back, and go with the pod.
func keepsAny(lease *coordinationv1.Lease) bool {
	copies, err := copiesIn(lease)
	return err == nil && slices.ContainsFunc(copies, func(c copied) bool { return c.Keep && !c.Volume })
}

// fetchesAny reports whether a sandbox has copies that are brought back in order.
func fetchesAny(lease *coordinationv1.Lease) bool {
	copies, err := copiesIn(lease)
	return err == nil && slices.ContainsFunc(copies, func(c copied) bool { return c.Keep })
}

// bringHome fetches the copies of a pod within its time, and notes in the Lease why it ends
// and what became of them.
func (i *Instance) bringHome(ctx context.Context, pod *corev1.Pod, home chan struct{}) {
	defer close(home)
	limited, cancel := context.WithTimeout(ctx, i.timeLeft(pod))
	err := i.fetchEnding(limited, pod)
	cancel()
	why := endCause(i.current(), pod)
	if err != nil {
		i.runtime.logger.Warn("the cluster ended a pod, and its changes were not brought back", "sandbox", i.name, "why", why, "error", err)
	} else {
		i.runtime.logger.Info("the cluster ended a pod; its changes were brought back", "sandbox", i.name, "why", why)
	}
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := i.noteEnd(noting, why, err); err != nil {
		i.runtime.logger.Warn("the end of a pod was not noted", "sandbox", i.name, "error", err)
	}
}

// timeLeft is how long the copies may take: what the cluster gives the pod, from now on. Its
// clock may be another than ours.
func (i *Instance) timeLeft(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return lastMoment
	}
	return max(lastMoment, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second-lastMoment)
}

// fetchEnding ends the commands of a pod that the cluster ends, and fetches its copies.
func (i *Instance) fetchEnding(ctx context.Context, pod *corev1.Pod) error {
	m := i.wire(i.dialEnding)
	defer m.Close()
	if err := m.EndCommands(ctx, max(i.runtime.keepTime(), i.timeLeft(pod))); err != nil && !errors.Is(err, machine.ErrUnsupported) {
		return err
	}
	return i.fetchHome(ctx, m)
}

// dialEnding is Dial for a pod that is being deleted.
func (i *Instance) dialEnding(ctx context.Context) (net.Conn, error) {
	if s := i.liveSession(); s != nil {
		return s.open()
	}
	pod := i.currentPod()
	if pod == nil {
		return nil, sandbox.ErrNotRunning
	}
	epoch, err := i.takeOver(ctx)
	if err != nil {
		return nil, asTransport(err)
	}
	s, err := i.runtime.session(string(pod.UID), pod.Name, epoch)
	if err != nil {
		return nil, err
	}
	return s.open()
}

// keepTime is how long the guest serves files after the signal that ends it.
func (r *Runtime) keepTime() time.Duration {
	return time.Duration(r.settings.TerminationGraceSec) * time.Second
}

// keepFiles makes the guest of a sandbox with copies that are to be brought back serve them
// for a while when the cluster ends the pod. A guest of an earlier version cannot.
func (i *Instance) keepFiles(ctx context.Context, m *machine.Machine) error {
	if !keepsAny(i.current()) {
		return nil
	}
	if err := m.KeepFiles(ctx, i.runtime.keepTime()); err != nil && !errors.Is(err, machine.ErrUnsupported) {
		return err
	}
	return nil
}

// noteHome notes that the copies are home: the guest need not wait any more, and no other
// process need fetch them.
func (i *Instance) noteHome(ctx context.Context, m *machine.Machine) error {
	if !fetchesAny(i.current()) {
		return nil
	}
	if err := i.noteLease(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[noteSaved], l.Annotations[notePhase] = time.Now().UTC().Format(time.RFC3339Nano), phaseEnding
	}); err != nil {
		return err
	}
	if err := m.KeepFiles(ctx, 0); err != nil && !errors.Is(err, machine.ErrUnsupported) {
		i.runtime.logger.Info("the guest was not told that its files are home", "sandbox", i.name, "error", err)
	}
	return nil
}

// noteEnd notes why the cluster ended the pod, and what is lost.
func (i *Instance) noteEnd(ctx context.Context, why string, failed error) error {
	text := why + "; its workspace was brought home"
	if failed != nil {
		text = why + "; " + lost(i.current()) + ": " + short(failed.Error())
	}
	return i.noteLease(ctx, func(l *coordinationv1.Lease) { l.Annotations[noteEnded] = text })
}

// lost says which changes of a workspace are gone with its pod.
func lost(l *coordinationv1.Lease) string {
	if saved := savedAt(l); !saved.IsZero() {
		return "what changed in its workspace since " + saved.Format(time.RFC3339) + " is lost"
	}
	return "what changed in its workspace since it was made is lost"
}

// savedAt is when the copies of a sandbox were last brought home; zero if never.
func savedAt(l *coordinationv1.Lease) time.Time {
	at, err := time.Parse(time.RFC3339Nano, l.Annotations[noteSaved])
	if err != nil {
		return time.Time{}
	}
	return at
}

// noteLease changes annotations of the Lease, whatever else changes it meanwhile.
func (i *Instance) noteLease(ctx context.Context, change func(*coordinationv1.Lease)) error {
	for tries := 1; ; tries++ {
		err := i.advance(ctx, change)
		if !errors.Is(err, sandbox.ErrBusy) || tries == maxTakeOvers {
			return err
		}
		if err := i.read(ctx); err != nil {
			return err
		}
	}
}

// endCause is why the cluster ends a pod, in its own words or those of a process of ours that
// had it do so.
func endCause(l *coordinationv1.Lease, pod *corev1.Pod) string {
	if why := l.Annotations[noteCause]; why != "" {
		return why
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return fmt.Sprintf("the cluster ended its pod (%s: %s)", condition.Reason, short(condition.Message))
		}
	}
	return "its pod was deleted from outside"
}

// endedBefore is ErrNotRunning with what was noted when the pod ended.
func endedBefore(l *coordinationv1.Lease) error {
	if why := l.Annotations[noteEnded]; why != "" {
		return errhint.With(fmt.Errorf("%w: %s", sandbox.ErrNotRunning, why), "the next use of the sandbox makes it anew")
	}
	return sandbox.ErrNotRunning
}

// problemOf is why a sandbox is dead, and what is lost with it; "" if nothing is known.
func problemOf(l *coordinationv1.Lease, pod *corev1.Pod) string {
	switch {
	case l.Annotations[noteEnded] != "":
		return l.Annotations[noteEnded]
	case stateOf(l, pod) != sandbox.StateDead || l.Annotations[notePhase] != phaseRunning || !keepsAny(l):
		return ""
	case pod == nil:
		return "its pod is gone; " + lost(l)
	case nodeLost(pod):
		return lostNode(pod).Error() + "; " + lost(l)
	case pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning:
		return endCause(l, pod)
	}
	return endOf(pod) + "; " + lost(l)
}
