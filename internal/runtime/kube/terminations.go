package kube

import (
	"context"
	"sync"

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
}

func newTerminations() terminations {
	ctx, cancel := context.WithCancel(context.Background())
	return terminations{ctx: ctx, cancel: cancel, ours: map[types.UID]bool{}, home: map[types.UID]chan struct{}{}}
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
}
