package wire

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

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
