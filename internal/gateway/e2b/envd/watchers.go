package envd

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

const (
	// maxWatchers bounds the watchers of one sandbox that are kept for clients that ask for
	// changes, and maxKept the changes of one.
	maxWatchers = 16
	maxKept     = 4096
	// unasked is after which a watcher ends that no client asks.
	unasked = 10 * time.Minute
)

// watchers are the watchers that are kept for clients, by id.
type watchers struct {
	mu  sync.Mutex
	all map[string]*keptWatcher
}

// keptWatcher keeps the changes in a directory until a client asks for them.
type keptWatcher struct {
	sandbox string
	in      *sandboxes.Inside
	watcher *guestfs.Watcher
	idle    *time.Timer

	mu     sync.Mutex
	events []fileEvent
	err    error
}

// run keeps changes until the watch ends.
func (k *keptWatcher) run(explain func(error) error) {
	for {
		changes, err := k.watcher.Next()
		var events []fileEvent
		if err == nil {
			events, err = eventsOf(changes)
		}
		k.mu.Lock()
		if k.events = append(k.events, events...); err == nil && len(k.events) > maxKept {
			k.events, err = k.events[:maxKept], errLost
		}
		if err != nil {
			k.err = explain(err)
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take returns the changes since the last time.
func (k *keptWatcher) take() ([]fileEvent, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	events := k.events
	k.events = nil
	if len(events) == 0 {
		return []fileEvent{}, k.err
	}
	return events, nil
}

func (k *keptWatcher) close() {
	k.idle.Stop()
	_ = k.watcher.Close()
	k.in.Leave()
}

// add keeps a watcher, if the sandbox has not too many.
func (w *watchers) add(k *keptWatcher) (id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, other := range w.all {
		if other.sandbox == k.sandbox {
			n++
		}
	}
	if n >= maxWatchers {
		return "", &fault{resourceExhausted, fmt.Sprintf("the sandbox has %d watchers", maxWatchers)}
	}
	if w.all == nil {
		w.all = map[string]*keptWatcher{}
	}
	id = rand.Text()
	w.all[id] = k
	k.idle = time.AfterFunc(unasked, func() { w.remove(k.sandbox, id) })
	return id, nil
}

// get returns a watcher of a sandbox, nil if there is none of that id.
func (w *watchers) get(sandbox, id string) *keptWatcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.all[id]; k != nil && k.sandbox == sandbox {
		k.idle.Reset(unasked)
		return k
	}
	return nil
}

// remove ends a watcher of a sandbox, and reports whether there was one of that id.
func (w *watchers) remove(sandbox, id string) bool {
	w.mu.Lock()
	k := w.all[id]
	found := k != nil && k.sandbox == sandbox
	if found {
		delete(w.all, id)
	}
	w.mu.Unlock()
	if found {
		k.close()
	}
	return found
}

func (w *watchers) close() {
	w.mu.Lock()
	all := w.all
	w.all = nil
	w.mu.Unlock()
	for _, k := range all {
		k.close()
	}
}

// createWatcher begins to keep the changes in a directory.
func (c *rpc) createWatcher() error {
	in, err := c.server.Made.Enter(context.WithoutCancel(c.r.Context()), c.Record)
	if err != nil {
		return err
	}
	w, err := c.watch(in.Ctx)
	if err != nil {
		in.Leave()
		return err
	}
	k := &keptWatcher{sandbox: c.ID, in: in, watcher: w}
	id, err := c.server.watchers.add(k)
	if err != nil {
		_ = w.Close()
		in.Leave()
		return err
	}
	context.AfterFunc(in.Ctx, func() { c.server.watchers.remove(k.sandbox, id) }) // the sandbox ends
	go k.run(in.Explain)
	return c.answer(map[string]string{"watcherId": id})
}

// watcherRequest names a watcher.
type watcherRequest struct {
	WatcherID string `json:"watcherId"`
}

func (c *rpc) watcherEvents() error {
	var q watcherRequest
	if err := c.read(&q); err != nil {
		return err
	}
	k := c.server.watchers.get(c.ID, q.WatcherID)
	if k == nil {
		return &fault{notFound, "there is no such watcher"}
	}
	events, err := k.take()
	if err != nil {
		return err
	}
	return c.answer(map[string][]fileEvent{"events": events})
}

func (c *rpc) removeWatcher() error {
	var q watcherRequest
	if err := c.read(&q); err != nil {
		return err
	}
	if !c.server.watchers.remove(c.ID, q.WatcherID) {
		return &fault{notFound, "there is no such watcher"}
	}
	return c.answer(struct{}{})
}
