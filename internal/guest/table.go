package guest

import (
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxProcesses bounds the processes that the guest keeps track of, over all
	// wires. Their descendants are the sandbox's own affair.
	maxProcesses = 256
	// maxEnded bounds those among them that have ended in the background and
	// wait to be asked about. The oldest goes first.
	maxEnded = 64
)

// processTable is the processes by their ids.
type processTable struct {
	mu        sync.Mutex
	decided   *sync.Cond          // a process has started, or has not
	processes map[string]*process // nil: about to start
	kept      int                 // in the background
}

func newProcessTable() *processTable {
	t := &processTable{processes: map[string]*process{}}
	t.decided = sync.NewCond(&t.mu)
	return t
}

// claim reserves an id for a process to come.
func (t *processTable) claim(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.processes[id]; taken {
		return wire.Fail(wire.CodeExists, "process "+id+" exists already")
	}
	t.evict()
	if len(t.processes) >= maxProcesses {
		return wire.Fail(wire.CodeTooMany, "too many processes run in this sandbox")
	}
	t.processes[id] = nil
	return nil
}

// evict drops the background processes that ended longest ago, beyond maxEnded.
func (t *processTable) evict() {
	if t.kept <= maxEnded {
		return
	}
	var ended []*process
	for _, p := range t.processes {
		if p != nil && p.background && p.over() {
			ended = append(ended, p)
		}
	}
	if len(ended) <= maxEnded {
		return
	}
	slices.SortFunc(ended, func(a, b *process) int { return a.ended.Compare(b.ended) })
	for _, p := range ended[:len(ended)-maxEnded] {
		t.drop(p.id)
	}
}

// drop removes a process. The lock is held.
func (t *processTable) drop(id string) {
	if p := t.processes[id]; p != nil && p.background {
		t.kept--
	}
	delete(t.processes, id)
}

func (t *processTable) keep(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.processes[p.id] = p
	if p.background {
		t.kept++
	}
	t.decided.Broadcast()
}

func (t *processTable) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(id)
	t.decided.Broadcast()
}

// find returns the process with an id; one that is about to start, when it has.
func (t *processTable) find(id string) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		p, claimed := t.processes[id]
		switch {
		case p != nil:
			return p, nil
		case !claimed:
			return nil, wire.Fail(wire.CodeNoProcess, "there is no process "+id)
		}
		t.decided.Wait()
	}
}

// after returns the processes whose ids follow id, in order.
func (t *processTable) after(id string) []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*process
	for _, p := range t.processes {
		if p != nil && p.id > id {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *process) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return found
}

func (t *processTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.processes)
}
