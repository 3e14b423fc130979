package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// side says which half a guard protects.
type side bool

const (
	hostSide  side = true
	guestSide side = false
)

// The yamux framing, as far as the guard reads it: version (u8), type (u8),
// flags (u16), stream (u32), length (u32).
const (
	muxHeader   = 12
	muxData     = 0
	muxPing     = 2
	muxGoAway   = 3
	muxFlagSYN  = 1
	muxMaxFlags = 15
)

// guard stands between the connection and yamux. Inward it reads every header
// and cuts the wire on what yamux would let a hostile peer do: open streams
// without end, have a goroutine started for every ping, keep the reader busy
// with frames for streams that do not exist. Outward it joins a header and its
// body, which yamux writes apart, into one system call.
type guard struct {
	net.Conn
	side side

	// inward; used by the one goroutine that reads
	header [muxHeader]byte
	have   int    // bytes of header seen
	skip   uint32 // bytes of payload still to come

	// outward; used by the one goroutine that writes
	pending []byte

	mu        sync.Mutex
	failure   error
	pings     budget
	anomalies budget
}

func newGuard(conn net.Conn, side side) *guard {
	return &guard{
		Conn: conn, side: side,
		pings:     budget{limit: MaxPeerPings},
		anomalies: budget{limit: MaxAnomalies},
	}
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if bad := g.inspect(p[:n]); bad != nil {
		return 0, g.cut(bad)
	}
	return n, err
}

// inspect follows the framing through b.
func (g *guard) inspect(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(uint32(len(b)), g.skip)
			g.skip -= n
			b = b[n:]
			continue
		}
		n := copy(g.header[g.have:], b)
		g.have += n
		b = b[n:]
		if g.have == muxHeader {
			g.have = 0
			if err := g.frame(); err != nil {
				return err
			}
		}
	}
	return nil
}

// frame judges one complete header.
func (g *guard) frame() error {
	kind, flags := g.header[1], binary.BigEndian.Uint16(g.header[2:])
	stream, length := binary.BigEndian.Uint32(g.header[4:]), binary.BigEndian.Uint32(g.header[8:])
	switch {
	case g.header[0] != 0 || kind > muxGoAway || flags > muxMaxFlags:
		return fmt.Errorf("%w: malformed frame", ErrProtocol)
	case kind == muxData && length > Window:
		return fmt.Errorf("%w: frame of %d bytes is over the window", ErrProtocol, length)
	case kind == muxPing && flags&muxFlagSYN != 0 && !g.allow(&g.pings):
		return fmt.Errorf("%w: more than %d pings in %v", ErrProtocol, MaxPeerPings, AnomalyWindow)
	case kind < muxPing && flags&muxFlagSYN != 0 && g.side == hostSide:
		return fmt.Errorf("%w: the guest opened a stream", ErrProtocol)
	case kind < muxPing && flags&muxFlagSYN != 0 && stream%2 == 0:
		return fmt.Errorf("%w: stream %d is not the peer's to open", ErrProtocol, stream)
	}
	if kind == muxData {
		g.skip = length
	}
	return nil
}

// Write implements net.Conn. yamux has one writer, and always writes a data
// frame's body right after its header.
func (g *guard) Write(p []byte) (int, error) {
	if g.pending == nil && len(p) == muxHeader && p[1] == muxData && binary.BigEndian.Uint32(p[8:]) > 0 {
		g.pending = append(make([]byte, 0, muxHeader), p...)
		return len(p), nil
	}
	if g.pending == nil {
		return g.Conn.Write(p)
	}
	parts := net.Buffers{g.pending, p}
	g.pending = nil
	n, err := parts.WriteTo(g.Conn)
	return max(0, int(n)-muxHeader), err
}

// cut ends the wire and remembers why.
func (g *guard) cut(why error) error {
	g.mu.Lock()
	if g.failure == nil {
		g.failure = why
	}
	g.mu.Unlock()
	g.Conn.Close()
	return why
}

func (g *guard) verdict() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

func (g *guard) allow(b *budget) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return b.spend(time.Now())
}

// budget allows limit events in each AnomalyWindow.
type budget struct {
	limit int
	used  int
	since time.Time
}

func (b *budget) spend(now time.Time) bool {
	if now.Sub(b.since) > AnomalyWindow {
		b.used, b.since = 0, now
	}
	b.used++
	return b.used <= b.limit
}

// anomalyLog receives yamux's warnings. One by one they are harmless and say
// nothing to a user; too many mean a peer that wants to keep us busy.
type anomalyLog struct{ guard *guard }

func (l anomalyLog) Print(...any)          { l.count() }
func (l anomalyLog) Printf(string, ...any) { l.count() }
func (l anomalyLog) Println(...any)        { l.count() }

func (l anomalyLog) count() {
	if !l.guard.allow(&l.guard.anomalies) {
		_ = l.guard.cut(fmt.Errorf("%w: more than %d stray frames in %v", ErrProtocol, MaxAnomalies, AnomalyWindow))
	}
}
