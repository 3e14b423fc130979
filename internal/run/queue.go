package run

import (
	"context"
	"slices"
	"sync"
)

// queue lets a number of runs in at once. When it is full, accounts take turns:
// one that asks for a hundred runs does not keep another waiting for its first.
type queue struct {
	mu      sync.Mutex
	free    int
	order   []string                   // accounts that wait, the next one first
	waiting map[string][]chan struct{} // by account, in the order of asking
}

func newQueue(size int) *queue { return &queue{free: size, waiting: map[string][]chan struct{}{}} }

// acquire waits for a turn. release must be called after it.
func (q *queue) acquire(ctx context.Context, account string) error {
	turn, ok := q.tryAcquire(account)
	if ok {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		if !q.cancel(account, turn) {
			q.release() // the turn came at the same moment
		}
		return context.Cause(ctx)
	}
}

func (q *queue) tryAcquire(account string) (turn chan struct{}, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return nil, true
	}
	turn = make(chan struct{})
	if len(q.waiting[account]) == 0 {
		q.order = append(q.order, account)
	}
	q.waiting[account] = append(q.waiting[account], turn)
	return turn, false
}

// release gives the slot to the oldest run of the next account.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.free++
		return
	}
	account := q.order[0]
	q.order = q.order[1:]
	turn := q.waiting[account][0]
	q.waiting[account] = q.waiting[account][1:]
	if len(q.waiting[account]) > 0 {
		q.order = append(q.order, account)
	} else {
		delete(q.waiting, account)
	}
	close(turn)
}

// cancel reports false if the turn had come already.
func (q *queue) cancel(account string, turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[account], turn)
	if i < 0 {
		return false
	}
	q.waiting[account] = slices.Delete(q.waiting[account], i, i+1)
	if len(q.waiting[account]) == 0 {
		delete(q.waiting, account)
		q.order = slices.DeleteFunc(q.order, func(a string) bool { return a == account })
	}
	return true
}

// waits returns how many runs wait for a turn.
func (q *queue) waits() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, turns := range q.waiting {
		n += len(turns)
	}
	return n
}
