package guest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/wire"
)

// wireKey: a client has one wire of each kind.
type wireKey struct {
	client string
	kind   wire.Kind
}

// hostWire is one wire.
type hostWire struct {
	*wire.Mux
	key wireKey
	// fenced is set before its host can have another wire: what still comes from
	// this one starts nothing, or the host would not know of it.
	fenced atomic.Bool

	mu      sync.Mutex
	directs map[net.Conn]bool // the direct wires that end with it; nil: it has ended
}

// addDirect has a direct wire end with this one. It returns false if that has ended.
func (w *hostWire) addDirect(line net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.directs != nil {
		w.directs[line] = true
	}
	return w.directs != nil
}

func (w *hostWire) removeDirect(line net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.directs, line)
}

func (w *hostWire) closeDirects() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range w.directs {
		_ = line.Close()
	}
	w.directs = nil
}

// over reports whether the wire has ended.
func (w *hostWire) over() bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

func (w *hostWire) fence() {
	w.fenced.Store(true)
	go func() { _ = w.Close() }()
}

// wires are the live wires, and the highest epoch of each that there ever was.
type wires struct {
	mu     sync.Mutex
	live   map[wireKey]*hostWire
	epochs map[wireKey]uint64
	direct func(net.Conn, *wire.Hello, *wire.Welcome) error // serves a direct wire to its end
}

func newWires() *wires {
	return &wires{live: map[wireKey]*hostWire{}, epochs: map[wireKey]uint64{}}
}

// errServed is a wire without streams that has come to its end.
var errServed = errors.New("the wire was served")

// greet performs the handshake and registers the wire.
func (ws *wires) greet(conn net.Conn, self *wire.Welcome) (*hostWire, error) {
	hello, err := wire.ReadHello(conn)
	if err != nil {
		return nil, err
	}
	welcome := *self
	if refusal := welcome.Accept(hello); refusal != nil {
		return nil, errors.Join(refusal, wire.WriteWelcome(conn, &wire.Welcome{Error: refusal}))
	}
	if hello.Kind == wire.KindDirect {
		return nil, errors.Join(errServed, ws.direct(conn, hello, &welcome))
	}
	if refusal := ws.fence(hello); refusal != nil {
		return nil, errors.Join(refusal, wire.WriteWelcome(conn, &wire.Welcome{Error: refusal}))
	}
	if err := wire.WriteWelcome(conn, &welcome); err != nil {
		return nil, err
	}
	session, err := wire.GuestMux(conn)
	if err != nil {
		return nil, err
	}
	w := &hostWire{Mux: session, key: wireKey{hello.Client, hello.Kind}, directs: map[net.Conn]bool{}}
	ws.register(w)
	return w, nil
}

// fence refuses what must not become a wire. From then on nothing with a lower
// epoch is admitted.
func (ws *wires) fence(hello *wire.Hello) *wire.Error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	key := wireKey{hello.Client, hello.Kind}
	highest, known := ws.epochs[key]
	switch {
	case hello.Epoch < highest:
		return wire.Fail(wire.CodeStale, "a newer wire of this client has taken over")
	case !known && len(ws.epochs) >= wire.MaxWires && !ws.forgetOne():
		return wire.Fail(wire.CodeTooMany, "too many hosts are connected")
	}
	ws.epochs[key] = hello.Epoch
	if old := ws.live[key]; old != nil {
		old.fence()
	}
	return nil
}

// forgetOne drops the epoch of a wire that is not live, to make room.
func (ws *wires) forgetOne() bool {
	for key := range ws.epochs {
		if ws.live[key] == nil {
			delete(ws.epochs, key)
			return true
		}
	}
	return false
}

// register puts the wire in place of an older one of the same key.
func (ws *wires) register(w *hostWire) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if old := ws.live[w.key]; old != nil {
		old.fence()
	}
	ws.live[w.key] = w
}

func (ws *wires) drop(w *hostWire) {
	w.fenced.Store(true)
	_ = w.Close()
	w.closeDirects()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.live[w.key] == w {
		delete(ws.live, w.key)
	}
}
