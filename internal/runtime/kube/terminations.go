package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// terminations are the pods that the cluster ends, and those that this process does.
type terminations struct {
	ctx    context.Context // of the work in the background
	cancel context.CancelFunc
	watch  sync.Once
	work   sync.WaitGroup

	mu   sync.Mutex
	ours map[types.UID]bool          // pods that this process deletes
	home map[types.UID]chan struct{} // closed when the copies of a pod are home, or lost
	ends map[types.UID]plannedEnd    // of pods with a deadline
}

// plannedEnd is when a pod is ended before its deadline.
type plannedEnd struct {
	at     time.Time
	cancel context.CancelFunc
}

func newTerminations() terminations {
	ctx, cancel := context.WithCancel(context.Background())
	return terminations{ctx: ctx, cancel: cancel, ours: map[types.UID]bool{}, home: map[types.UID]chan struct{}{}, ends: map[types.UID]plannedEnd{}}
}

func (t *terminations) close() {
	t.cancel()
	t.work.Wait()
}

// setOurs notes that this process deletes a pod.
func (t *terminations) setOurs(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours[uid] = true
}

// begin returns what is closed when the copies of a pod are home, and whether the caller is
// to bring them. It returns nil for a pod that this process deletes.
func (t *terminations) begin(uid types.UID) (home chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	home, under := t.home[uid]
	if under || t.ours[uid] {
		return home, false
	}
	home = make(chan struct{})
	t.home[uid] = home
	return home, true
}

// forget drops what is known of a pod that is gone.
func (t *terminations) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ours, uid)
	delete(t.home, uid)
	if end, ok := t.ends[uid]; ok {
		end.cancel()
		delete(t.ends, uid)
	}
}

// plan calls do at that time, once, unless the pod is gone by then or another time was planned.
// The caller is part of work.
func (t *terminations) plan(uid types.UID, at time.Time, do func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, planned := t.ends[uid]
	if planned && before.at.Equal(at) {
		return
	}
	if planned {
		before.cancel()
	}
	ctx, cancel := context.WithCancel(t.ctx)
	t.ends[uid] = plannedEnd{at, cancel}
	t.work.Go(func() {
		if pause(ctx, time.Until(at)) == nil {
			do(ctx)
		}
	})
}
