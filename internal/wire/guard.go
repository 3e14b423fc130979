package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

// side is the side of the wire that a guard protects.
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
	muxWindow   = 1
	muxPing     = 2
	muxGoAway   = 3
	muxFlagSYN  = 1
	muxFlagFIN  = 4
	muxFlagRST  = 8
	muxMaxFlags = 15
)

// guard is the net.Conn between the connection and yamux. When reading it checks
// every header and closes the wire on what yamux would let a hostile peer do:
// open streams without end, have a goroutine started for every ping, keep the
// reader busy with frames for streams that do not exist. When writing it joins
// into one system call what yamux writes apart: a header and its body, and before
// them frames that only open, acknowledge or end a stream.
type guard struct {
	net.Conn
	side side

	// reading; used by the one goroutine that reads
	header [muxHeader]byte
	have   int    // bytes of header seen
	skip   uint32 // bytes of payload still to come

	// writing
	writing sync.Mutex
	pending []byte // frames that wait for one that is urgent
	body    bool   // the last of them announced a body, which comes next
	flusher *time.Timer

	mu        sync.Mutex
	failure   error
	pings     rateLimit
	anomalies rateLimit
	finished  [MaxStreams]uint32 // the last streams that the peer ended
	next      int                // index of the next in finished
}

func newGuard(conn net.Conn, side side) *guard {
	g := &guard{
		Conn: socket.Wrap(conn), side: side,
		pings:     rateLimit{limit: MaxPeerPings},
		anomalies: rateLimit{limit: MaxAnomalies},
	}
	g.flusher = time.AfterFunc(coalesceDelay, g.flush)
	g.flusher.Stop()
	return g
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if bad := g.inspect(p[:n]); bad != nil {
		return 0, g.fail(bad)
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
			if err := g.checkFrame(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFrame checks one complete header.
func (g *guard) checkFrame() error {
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
	if kind < muxPing && flags&muxFlagFIN != 0 {
		g.finish(stream)
	}
	return nil
}

// finish records that the peer has ended a stream.
func (g *guard) finish(stream uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finished[g.next] = stream
	g.next = (g.next + 1) % len(g.finished)
}

// hasFinished reports whether the peer has ended a stream, not long ago.
func (g *guard) hasFinished(stream uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.finished[:], stream)
}

// fail closes the wire and keeps the first reason.
func (g *guard) fail(why error) error {
	g.mu.Lock()
	if g.failure == nil {
		g.failure = why
	}
	g.mu.Unlock()
	g.Conn.Close()
	return why
}

func (g *guard) cause() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

func (g *guard) allow(b *rateLimit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return b.allow(time.Now())
}
