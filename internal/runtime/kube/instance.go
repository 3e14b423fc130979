package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Instance is one sandbox: its Lease, and its pod if it has one.
type Instance struct {
	runtime *Runtime
	name    string
	opening singleflight.Group // of a session

	mu    sync.Mutex
	lease *coordinationv1.Lease
	pod   *corev1.Pod // nil: none
}

var (
	_ sandbox.Instance = (*Instance)(nil)
	_ sandbox.Saver    = (*Instance)(nil)
)

// Open finds a sandbox of ours by its name.
func (r *Runtime) Open(ctx context.Context, name string) (sandbox.Instance, error) {
	i := &Instance{runtime: r, name: name}
	if err := i.read(ctx); err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", name, err)
	}
	return i, nil
}

// read reads the Lease and the pod that it names.
func (i *Instance) read(ctx context.Context) error {
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	lease := new(coordinationv1.Lease)
	if err := c.get(ctx, leases, i.runtime.leaseName(i.name), lease); err != nil {
		return err
	}
	if old := i.current(); old != nil && old.UID != lease.UID {
		return fmt.Errorf("it was made anew: %w", sandbox.ErrNotFound)
	}
	if err := i.runtime.checkOwner(lease); err != nil {
		return err
	}
	pod, err := readPod(ctx, c, lease)
	if err != nil {
		return err
	}
	i.replace(lease, pod)
	return nil
}

// readPod returns the pod of a Lease; nil if there is none.
func readPod(ctx context.Context, c *cluster, lease *coordinationv1.Lease) (*corev1.Pod, error) {
	name := lease.Annotations[notePod]
	if name == "" {
		return nil, nil
	}
	pod := new(corev1.Pod)
	err := c.get(ctx, pods, name, pod)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil, nil
	}
	return ownPod(lease, pod), err
}

// ownPod returns the pod of that name if it is the one that the Lease was given; nil if it
// is another, which agent-sandbox made when the first was gone, or if it was started again.
func ownPod(lease *coordinationv1.Lease, pod *corev1.Pod) *corev1.Pod {
	if uid := lease.Annotations[noteUID]; pod != nil && uid != "" && uid != string(pod.UID) {
		return nil
	}
	if pod != nil && !isOver(pod) && restarted(lease, pod) {
		return nil
	}
	return pod
}

// restarted reports whether the pod has no container any more, or another than the one that
// the copies were sent into: it has none of the files, and nothing may be brought home from
// it. So a kubelet finds a pod that was gone, and that a cluster has again whose etcd was
// restored from a snapshot.
func restarted(lease *coordinationv1.Lease, pod *corev1.Pod) bool {
	noted := lease.Annotations[noteContainer]
	return noted != "" && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].ContainerID != noted
}

// replace keeps what the API server has now; a nil pod is none.
func (i *Instance) replace(lease *coordinationv1.Lease, pod *corev1.Pod) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lease, i.pod = lease, pod; lease.Annotations[notePhase] == phaseStopped {
		i.pod = nil
	}
}

// remember keeps what the API server said; a nil pod leaves the one that is known.
func (i *Instance) remember(lease *coordinationv1.Lease, pod *corev1.Pod) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lease = lease; pod != nil {
		i.pod = pod
	}
	if i.pod != nil && i.pod.Name != lease.Annotations[notePod] || lease.Annotations[notePhase] == phaseStopped {
		i.pod = nil
	}
}

func (i *Instance) current() *coordinationv1.Lease {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lease
}

func (i *Instance) currentPod() *corev1.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pod
}

// Seen is what the API server said last.
func (i *Instance) Seen() sandbox.Summary {
	i.mu.Lock()
	defer i.mu.Unlock()
	return summaryOf(i.lease, i.pod)
}

// State asks the API server.
func (i *Instance) State(ctx context.Context) (sandbox.State, error) {
	if err := i.read(ctx); err != nil {
		return "", fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	return i.Seen().State, nil
}

// List returns every sandbox of this installation.
func (r *Runtime) List(ctx context.Context) ([]sandbox.Summary, error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{LabelSelector: r.selectAll()}
	held, err := list[coordinationv1.Lease](ctx, c, leases, options)
	if err != nil {
		return nil, fmt.Errorf("list of Leases: %w", err)
	}
	running, err := list[corev1.Pod](ctx, c, pods, options)
	if err != nil {
		return nil, fmt.Errorf("list of pods: %w", err)
	}
	byName := map[string]*corev1.Pod{}
	for n := range running {
		byName[running[n].Name] = &running[n]
	}
	var all []sandbox.Summary
	for n := range held {
		if held[n].Annotations[noteName] != "" {
			all = append(all, summaryOf(&held[n], ownPod(&held[n], byName[held[n].Annotations[notePod]])))
		}
	}
	return all, nil
}
