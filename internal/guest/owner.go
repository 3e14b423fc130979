package guest

import "github.com/atoll-run/atoll/internal/wire"

// changeOwner refuses a connection of a gateway that was succeeded by another. The first
// connection of a later gateway ends all of those before.
func (ws *wires) changeOwner(epoch uint64) *wire.Error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if epoch < ws.owner {
		return wire.Fail(wire.CodeStale, "another gateway has taken the sandbox over")
	}
	ws.owner = epoch
	for w := range ws.owned {
		if w.owner < epoch {
			w.fence()
		}
	}
	return nil
}

// own keeps a connection of a gateway, until disown.
func (ws *wires) own(w *hostWire) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.owned[w] = true
	if w.owner < ws.owner { // since its handshake
		w.fence()
	}
}

func (ws *wires) disown(w *hostWire) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.owned, w)
}
