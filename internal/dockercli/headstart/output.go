package headstart

import (
	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// show shows what the command has said. What could not be shown is still there, as
// if it were what the guest has said.
func (c *call) show() bool {
	started, _ := payloadOf(c.heard[:c.told])
	kept := wire.HeaderSize + len(started)
	for {
		kind := wire.FrameType(c.heard[kept])
		if kind == wire.FrameExit {
			return true
		}
		text, _ := payloadOf(c.heard[kept:c.told])
		shown := c.outputs[kind-wire.FrameStdout].show(text)
		gone := wire.HeaderSize + len(text)
		if left := len(text) - shown; left > 0 {
			gone = shown
			wire.PutHeader(c.heard[kept+gone:], kind, left)
		}
		copy(c.heard[kept:], c.heard[kept+gone:c.told])
		if c.told -= gone; shown < len(text) {
			return false
		}
	}
}

// pipeRoom is what a pipe has room for if it has any.
const pipeRoom = 4 << 10

// show writes to where nobody can keep us waiting, and says how much.
func (d *descriptor) show(text []byte) int {
	switch d.kind() {
	case unix.S_IFSOCK:
		return d.write(text, true)
	case unix.S_IFREG:
		return d.write(text, false)
	case unix.S_IFIFO:
		if len(text) <= pipeRoom && d.writable() {
			return d.write(text, false)
		}
	}
	return 0
}
