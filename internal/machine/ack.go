package machine

import (
	"context"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// maxResultIDs bounds the results that are acknowledged after a wire broke: no
// more commands were under way then.
const maxResultIDs = 2 * maxCommands

// resultIDs are the commands whose results came last. Their streams were closed,
// but if the wire broke just then the guest did not notice, and keeps the results
// for a host that attaches again.
type resultIDs struct {
	mu  sync.Mutex
	ids []string
}

func (f *resultIDs) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ids) == maxResultIDs {
		f.ids = slices.Delete(f.ids, 0, maxResultIDs/2)
	}
	f.ids = append(f.ids, id)
}

func (f *resultIDs) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

// noteResult records that the result of a command came over a wire. If that has
// broken since, the result is acknowledged over another.
func (m *Machine) noteResult(id string, over *wireConn) {
	m.unacked.add(id)
	if !over.alive() {
		m.goBackground(func() {
			ctx, cancel := context.WithTimeout(m.ctx, CallTimeout)
			defer cancel()
			if wc, err := m.control.get(ctx); err == nil {
				m.sendAcks(wc)
			}
		})
	}
}

// sendAcks acknowledges the last results over a wire.
func (m *Machine) sendAcks(wc *wireConn) {
	ids := m.unacked.list()
	if len(ids) == 0 {
		return
	}
	req := &wire.Request{Op: wire.OpAckIDs, Target: &wire.Target{IDs: ids}}
	_ = m.callOn(m.ctx, wc, &UnaryCall{Request: req}, &struct{}{})
}
