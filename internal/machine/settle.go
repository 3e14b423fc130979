package machine

import (
	"context"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// maxFinished bounds the commands of which a guest may not know that their
// results arrived. More than those under way when a wire broke there are not.
const maxFinished = 2 * maxCommands

// finished are the commands whose results came last. Their streams were closed,
// but if the wire broke just then the guest did not notice, and keeps the
// results for a host that might come back for them.
type finished struct {
	mu  sync.Mutex
	ids []string
}

func (f *finished) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ids) == maxFinished {
		f.ids = slices.Delete(f.ids, 0, maxFinished/2)
	}
	f.ids = append(f.ids, id)
}

func (f *finished) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

// finish notes that the result of a command came over a wire, which may have
// broken since.
func (m *Machine) finish(id string, over *live) {
	m.finished.add(id)
	if !over.alive() {
		m.aside(func() {
			ctx, cancel := context.WithTimeout(m.ctx, answerPatience)
			defer cancel()
			if live, err := m.control.get(ctx); err == nil {
				m.settle(live)
			}
		})
	}
}

// settle tells a guest what arrived.
func (m *Machine) settle(live *live) {
	ids := m.finished.list()
	if len(ids) == 0 {
		return
	}
	req := &wire.Request{Op: wire.OpSettle, Target: &wire.Target{IDs: ids}}
	_ = m.askOn(m.ctx, live, &question{Request: req}, &struct{}{})
}
