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

// Write implements net.Conn. yamux has one writer, and always writes a data
// frame's body right after its header.
func (g *guard) Write(p []byte) (int, error) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if !g.body && g.coalesce(p) {
		return len(p), nil
	}
	g.body = false
	if len(g.pending) == 0 {
		return g.Conn.Write(p)
	}
	held := len(g.pending)
	n, err := g.writeJoined(p)
	g.pending = g.pending[:0]
	return max(0, n-held), err
}

// maxJoined is how much is copied so that one write is enough: not every
// connection can write two pieces at once.
const maxJoined = 16 << 10

// writeJoined sends what was held back, and p.
func (g *guard) writeJoined(p []byte) (int, error) {
	if len(p) <= maxJoined {
		g.pending = append(g.pending, p...)
		return g.Conn.Write(g.pending)
	}
	if direct, ok := g.Conn.(*socket.Conn); ok {
		if err := direct.WritePieces([][]byte{g.pending, p}); err != nil {
			return 0, err
		}
		return len(g.pending) + len(p), nil
	}
	parts := net.Buffers{g.pending, p}
	n, err := parts.WriteTo(g.Conn)
	return int(n), err
}

// coalesce holds a header back if a body follows, or if it is not urgent: then the
// first starts the timer that sends it after coalesceDelay.
func (g *guard) coalesce(p []byte) bool {
	if len(p) != muxHeader {
		return false
	}
	length := binary.BigEndian.Uint32(p[8:])
	g.body = p[1] == muxData && length > 0
	if !g.body && (!lifecycle(p) || length > 0) {
		return false
	}
	if len(g.pending) == 0 {
		g.flusher.Reset(coalesceDelay)
	}
	g.pending = append(g.pending, p...)
	return true
}

// lifecycle reports whether a frame only opens, acknowledges or ends a stream.
func lifecycle(header []byte) bool {
	flags := binary.BigEndian.Uint16(header[2:])
	return header[1] == muxWindow && flags != 0 && flags&muxFlagRST == 0
}

// flush sends what was held back, unless a body is about to follow.
func (g *guard) flush() {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.body || len(g.pending) == 0 {
		return
	}
	_, _ = g.Conn.Write(g.pending) // the next write returns the same error
	g.pending = g.pending[:0]
}

// Close implements net.Conn. What was held back is sent first: it may say that
// this side has ended a stream, and so has the result.
func (g *guard) Close() error {
	g.flusher.Stop()
	if g.writing.TryLock() { // else a write is under way, which sends it or fails
		if !g.body && len(g.pending) > 0 {
			_ = g.SetWriteDeadline(time.Now().Add(flushTimeout))
			_, _ = g.Conn.Write(g.pending)
			g.pending = g.pending[:0]
		}
		g.writing.Unlock()
	}
	return g.Conn.Close()
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

// rateLimit allows limit events in each AnomalyWindow.
type rateLimit struct {
	limit int
	used  int
	since time.Time
}

func (b *rateLimit) allow(now time.Time) bool {
	if now.Sub(b.since) > AnomalyWindow {
		b.used, b.since = 0, now
	}
	b.used++
	return b.used <= b.limit
}

// anomalyLog counts yamux's warnings. Single ones are harmless; more than
// MaxAnomalies in AnomalyWindow close the wire.
type anomalyLog struct{ guard *guard }

func (l anomalyLog) Print(...any)          { l.count() }
func (l anomalyLog) Printf(string, ...any) { l.count() }
func (l anomalyLog) Println(...any)        { l.count() }

func (l anomalyLog) count() {
	if !l.guard.allow(&l.guard.anomalies) {
		_ = l.guard.fail(fmt.Errorf("%w: more than %d stray frames in %v", ErrProtocol, MaxAnomalies, AnomalyWindow))
	}
}
