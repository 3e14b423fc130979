package guest

import (
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxProcesses bounds the execs in the table, over all wires. Their descendants are
	// bounded by the sandbox's limit of processes.
	maxProcesses = 256
	// maxEnded bounds the background processes in the table that have ended. The oldest
	// is removed first.
	maxEnded = 64
)

// processTable holds the execs by their ids.
type processTable struct {
	mu        sync.Mutex
	decided   *sync.Cond          // signals that a claimed process has started, or failed
	processes map[string]*process // nil: about to start
	kept      int                 // in the background
}

func newProcessTable() *processTable {
	t := &processTable{processes: map[string]*process{}}
	t.decided = sync.NewCond(&t.mu)
	return t
}

// claim reserves an id for a process that is about to start.
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

// evict removes the background processes that ended first, beyond maxEnded.
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

// drop removes a process. The caller holds mu.
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

// awaitStarted waits until no process is about to start.
func (t *processTable) awaitStarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.processes {
		for p, claimed := t.processes[id]; p == nil && claimed; p, claimed = t.processes[id] {
			t.decided.Wait()
		}
	}
}

func (t *processTable) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(id)
	t.decided.Broadcast()
}

// find returns the process with an id. It waits for one that is about to start.
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

// byMark returns the id of the exec with mark m, or "".
func (t *processTable) byMark(m proc.Mark) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, p := range t.processes {
		if p != nil && m != 0 && p.mark == m {
			return id
		}
	}
	return ""
}

func (t *processTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.processes)
}
