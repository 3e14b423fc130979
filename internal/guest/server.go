package guest

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/files"
	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/guest/ports"
	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
)

// server is the state of the guest.
type server struct {
	self           wire.Welcome // without a version: that depends on the host
	lineage        *proc.Lineage
	walker         *proc.Walker
	reaper         *proc.Reaper
	wires          *wires
	table          *processTable
	memory         *oomWatch
	pids           *proc.PidsWatch
	releaser       *memoryReleaser
	files          *files.Server
	direct         *directWires
	ports          *ports.Server
	grants         *grants
	procs          *maxprocs.Limiter
	quota          *quotaEnforcer // nil: the workspace has no limits
	processStarted chan struct{}  // holds a value after a process was started, for socketCheck
	// slots bounds the calls that wait for the kernel at once, and so the threads they
	// need, which were started up front (see makeThreads).
	slots       chan struct{}
	shortExecs  atomic.Int64  // commands on direct connections that are waited for
	unmasked    []unix.Signal // see spawn.Attr
	openFiles   unix.Rlimit   // of new processes, see Options
	reattach    time.Duration // see Options
	join        spawn.Join    // namespaces of new processes
	termination *termination
	identity    identityOnce // whose sandbox it is, if it was made for a pool
	devNull     int          // /dev/null for processes without input; -1: there is none
}

func newServer(build string, lineage *proc.Lineage) (*server, error) {
	procList, err := proc.NewList()
	if err != nil {
		return nil, err
	}
	reaper := proc.NewReaper(lineage)
	walker := proc.NewWalker(lineage, reaper, procList, isPID1())
	procs := maxprocs.NewLimiter()
	s := &server{
		self:    wire.Welcome{Boot: wire.NewID(), Build: build},
		lineage: lineage, walker: walker, grants: newGrants(lineage, walker), reaper: reaper, wires: newWires(), table: newProcessTable(),
		memory: &oomWatch{}, pids: proc.NewPidsWatch(reaper, walker), releaser: newMemoryReleaser(), files: files.NewServer(procs), direct: newDirectWires(), procs: procs,
		slots: make(chan struct{}, maxSlots), processStarted: make(chan struct{}, 1), termination: newTermination(),
	}
	s.wires.direct = s.serveDirect
	s.ports = ports.NewServer(s)
	if s.devNull, err = openNull(); err != nil {
		s.devNull = -1 // an image without it is no reason not to start
	}
	return s, nil
}

// serve serves one connection: of a host, or of a stdio bridge that passes one on.
func (s *server) serve(conn net.Conn) {
	local, ok := conn.(*net.UnixConn)
	if !ok || !isFDPass(local) {
		s.serveHost(conn)
		return
	}
	handed, err := receiveConn(local)
	if err != nil {
		_ = conn.Close()
		return
	}
	s.serveHost(handed)
}

// serveHost performs the handshake of one connection and answers its streams until it ends.
func (s *server) serveHost(conn net.Conn) {
	defer conn.Close()
	w, err := s.wires.handshake(conn, &s.self)
	if err != nil {
		return
	}
	defer s.wires.drop(w)
	for {
		stream, err := w.Accept()
		if err != nil || w.Streams() > wire.MaxStreams {
			return
		}
		go s.answer(w, stream)
	}
}

// answer serves one stream: one operation.
func (s *server) answer(w *hostWire, stream net.Conn) {
	defer s.releaser.schedule()
	defer stream.Close()
	reader := wire.NewReader(stream)
	req, err := reader.Request()
	if err != nil {
		_ = w.Close() // a host that does not speak the protocol
		return
	}
	c := &call{server: s, wire: w, stream: stream, reader: reader}
	if err := c.dispatch(req); err != nil {
		_ = wire.WriteJSON(stream, wire.FrameError, wire.AsError(err))
	}
}

// noteStart tells the quota and socket checks that a process was started.
func (s *server) noteStart() {
	s.quota.schedule()
	select {
	case s.processStarted <- struct{}{}:
	default: // the value of an earlier start is still there
	}
}

// withSlot waits for a slot and runs f.
func (s *server) withSlot(f func()) {
	makeThreads()
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	f()
}

// OfConn implements ports.CallerFinder.
func (s *server) OfConn(conn net.Conn) (c ports.Caller) {
	s.withSlot(func() { c = s.callerOf(peerSocket(conn)) })
	return c
}

// OfDatagram implements ports.CallerFinder.
func (s *server) OfDatagram(from, to netip.AddrPort) (c ports.Caller) {
	s.withSlot(func() { c = s.callerOf(senderSockets(from, to)) })
	return c
}

// callerOf returns the caller that holds one of the sockets.
func (s *server) callerOf(sockets []string) ports.Caller {
	id, mark := s.grants.ofSockets(sockets)
	return ports.Caller{Grant: id, Exec: s.table.byMark(mark)}
}

// isPID1 reports whether the guest is process 1 of its own pid namespace.
func isPID1() bool { return os.Getpid() == 1 }
