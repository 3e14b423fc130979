package guest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/wire"
)

// wireKey identifies a wire: a client has one of each kind.
type wireKey struct {
	client string
	kind   wire.Kind
}

// hostWire is one wire to a host.
type hostWire struct {
	*wire.Mux
	key wireKey
	// fenced is set before a newer wire of the same key is accepted. Requests that
	// still arrive on this one start no process, as the host would not learn of it.
	fenced atomic.Bool
	owner  uint64   // the epoch of the gateway at its other end
	conn   net.Conn // of a direct connection without a parent, which has no Mux

	mu      sync.Mutex
	directs map[net.Conn]bool // the direct connections that end with it; nil: it has ended
}

// addDirect makes a direct connection end with this wire. It returns false if the wire
// has ended.
func (w *hostWire) addDirect(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.directs != nil {
		w.directs[conn] = true
	}
	return w.directs != nil
}

func (w *hostWire) removeDirect(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.directs, conn)
}

func (w *hostWire) closeDirects() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.directs {
		_ = conn.Close()
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
	go func() {
		if w.conn != nil {
			_ = w.conn.Close()
			return
		}
		_ = w.Close()
	}()
}

// wires holds the live wires, and the highest epoch of each key.
type wires struct {
	mu     sync.Mutex
	live   map[wireKey]*hostWire
	epochs map[wireKey]uint64
	owner  uint64                                           // the highest epoch of a gateway
	owned  map[*hostWire]bool                               // what gateways have open
	direct func(net.Conn, *wire.Hello, *wire.Welcome) error // serves a direct connection until it ends
}

func newWires() *wires {
	return &wires{live: map[wireKey]*hostWire{}, epochs: map[wireKey]uint64{}, owned: map[*hostWire]bool{}}
}

// errServed ends a direct connection, which has no streams.
var errServed = errors.New("the wire was served")

// handshake performs the handshake and registers the wire.
func (ws *wires) handshake(conn net.Conn, self *wire.Welcome) (*hostWire, error) {
	hello, err := wire.ReadHello(conn)
	if err != nil {
		return nil, err
	}
	welcome := *self
	if refusal := welcome.Accept(hello); refusal != nil {
		return nil, errors.Join(refusal, wire.WriteWelcome(conn, &wire.Welcome{Error: refusal}))
	}
	if refusal := ws.changeOwner(hello.Fence); refusal != nil {
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
	w := &hostWire{Mux: session, key: wireKey{hello.Client, hello.Kind}, owner: hello.Fence, directs: map[net.Conn]bool{}}
	ws.own(w)
	ws.register(w)
	return w, nil
}

// fence refuses a wire with a lower epoch than one before, and one too many. It records
// the epoch and fences the older wire of the same key.
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

// register makes the wire the live one of its key.
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
	ws.disown(w)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.live[w.key] == w {
		delete(ws.live, w.key)
	}
}
