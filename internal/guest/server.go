package guest

import (
	"crypto/rand"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// maxProcesses bounds the processes that the guest keeps track of, over all
// wires. Their descendants are the sandbox's own affair.
const maxProcesses = 256

// server answers hosts.
type server struct {
	boot    string
	build   string
	lineage *lineage
	reaper  *reaper
	admit   func(net.Conn) error // refuses peers that are no host

	mu        sync.Mutex
	wires     map[wireKey]*hostWire
	epochs    map[string]uint64 // the highest of each client
	processes map[string]*process
}

// wireKey: a client has one wire of each kind.
type wireKey struct {
	client string
	kind   wire.Kind
}

// hostWire is one live wire.
type hostWire struct {
	key     wireKey
	session *wire.Session
}

func newServer(build string, lineage *lineage, admit func(net.Conn) error) *server {
	return &server{
		boot: rand.Text(), build: build,
		lineage: lineage, reaper: newReaper(), admit: admit,
		wires: map[wireKey]*hostWire{}, epochs: map[string]uint64{}, processes: map[string]*process{},
	}
}

// serve greets one connection and answers its streams until it ends.
func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	if err := s.admit(conn); err != nil {
		return
	}
	w, err := s.greet(conn)
	if err != nil {
		return
	}
	defer s.drop(w)
	for {
		stream, err := w.session.Accept()
		if err != nil || w.session.Streams() > wire.MaxStreams {
			return
		}
		go s.answer(w, stream)
	}
}

// greet performs the handshake and registers the wire.
func (s *server) greet(conn net.Conn) (*hostWire, error) {
	hello, err := wire.Receive(conn)
	if err != nil {
		return nil, err
	}
	welcome := &wire.Welcome{Version: wire.Negotiate(hello), Boot: s.boot, Build: s.build}
	if refusal := s.fence(hello, welcome.Version); refusal != nil {
		return nil, errors.Join(refusal, wire.Answer(conn, &wire.Welcome{Error: refusal}))
	}
	if err := wire.Answer(conn, welcome); err != nil {
		return nil, err
	}
	session, err := wire.GuestSession(conn)
	if err != nil {
		return nil, err
	}
	w := &hostWire{wireKey{hello.Client, hello.Kind}, session}
	s.register(w)
	return w, nil
}

// fence refuses what must not become a wire, and closes the client's wires of
// older epochs.
func (s *server) fence(hello *wire.Hello, version int) *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	highest := s.epochs[hello.Client]
	switch {
	case version == 0:
		return wire.Fail(wire.CodeVersion, "the guest speaks another version of the protocol")
	case hello.Epoch < highest:
		return wire.Fail(wire.CodeStale, "a newer wire of this client has taken over")
	case highest == 0 && len(s.epochs) >= wire.MaxWires && !s.forgetClient():
		return wire.Fail(wire.CodeTooMany, "too many hosts are connected")
	}
	if hello.Epoch > highest {
		s.epochs[hello.Client] = hello.Epoch
		for key, w := range s.wires {
			if key.client == hello.Client {
				go w.session.Close()
			}
		}
	}
	return nil
}

// forgetClient drops the epoch of a client that has no wire, to make room.
func (s *server) forgetClient() bool {
	for client := range s.epochs {
		_, control := s.wires[wireKey{client, wire.KindControl}]
		_, bulk := s.wires[wireKey{client, wire.KindBulk}]
		if !control && !bulk {
			delete(s.epochs, client)
			return true
		}
	}
	return false
}

// register puts the wire in place of an older one of the same key.
func (s *server) register(w *hostWire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.wires[w.key]; old != nil {
		go old.session.Close()
	}
	s.wires[w.key] = w
}

func (s *server) drop(w *hostWire) {
	_ = w.session.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wires[w.key] == w {
		delete(s.wires, w.key)
	}
}

// answer serves one stream: one operation.
func (s *server) answer(w *hostWire, stream net.Conn) {
	defer stream.Close()
	reader := wire.NewReader(stream)
	req, err := reader.Request()
	if err != nil {
		_ = w.session.Close() // a host that does not speak the protocol
		return
	}
	c := &call{server: s, wire: w, stream: stream, reader: reader}
	if err := c.dispatch(req); err != nil {
		_ = wire.WriteJSON(stream, wire.FrameError, wire.AsError(err))
	}
}

// process finds a process by its id.
func (s *server) process(id string) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[id]; p != nil {
		return p, nil
	}
	return nil, wire.Fail(wire.CodeNoProcess, "there is no process "+id)
}

// claim reserves an id for a process to come.
func (s *server) claim(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.processes[id]; taken {
		return wire.Fail(wire.CodeExists, "process "+id+" exists already")
	}
	if len(s.processes) >= maxProcesses {
		return wire.Fail(wire.CodeTooMany, "too many processes run in this sandbox")
	}
	s.processes[id] = nil
	return nil
}

func (s *server) keep(id string, p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[id] = p
}

func (s *server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, id)
}

// abandon ends and forgets a process, after a while, unless a host has attached
// to it again since its last reader left.
func (s *server) abandon(p *process, left int, after time.Duration) {
	time.AfterFunc(after, func() {
		if !p.out.unread(left) {
			return
		}
		p.end(byRequest, p.grace)
		<-p.done
		s.forget(p.id)
	})
}

// alone reports whether the guest is process 1 of its own pid namespace.
func alone() bool { return os.Getpid() == 1 }
