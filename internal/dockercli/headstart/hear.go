package headstart

import (
	"encoding/binary"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// How long the command is waited for here, which is what a login shell takes on a
// busy machine, and how long from when it has said something: most say what they
// have to say at their end. Nothing of that is shown before, because who has seen
// something may send a signal, and expects the command to end, which is for the
// whole program to see to.
const (
	patience = 30 * time.Millisecond
	moment   = 3 * time.Millisecond
)

// hear waits for the command to end. Meanwhile it passes input on. However much
// there is to hear and to pass on, it does not take longer.
func (c *call) hear() (code int, over bool) {
	until := now() + patience
	for {
		said, ok := c.next(until - now())
		if !ok || said != silence {
			return c.code, said == end
		}
		if c.spoken && !c.hurries {
			c.hurries, until = true, min(until, now()+moment)
		}
	}
}

// next passes on what comes next, on either side, if something does.
func (c *call) next(within time.Duration) (said saying, ok bool) {
	fds := [2]unix.PollFd{{Fd: c.conn.number(), Events: unix.POLLIN}, {Fd: c.input.number(), Events: unix.POLLIN}}
	waiting := fds[:1]
	if c.line.stdin && c.started && !c.ended {
		waiting = fds[:]
	}
	switch {
	case within <= 0 || !poll(waiting, within):
		return silence, false
	case fds[0].Revents != 0:
		return c.listen(), true
	}
	return silence, c.passInput()
}

// saying is what a guest has said up to now.
type saying uint8

const (
	silence saying = iota // nothing that shows how it goes on
	unclear               // something that is for others to understand, or to show
	end                   // that the command has ended, and what it said is shown
)

// listen hears what the guest has to say.
func (c *call) listen() saying {
	n, ok := c.conn.read(c.heard[c.told:])
	if !ok || n == 0 {
		return unclear
	}
	c.told += n
	said := c.understand()
	if said == silence && c.told == len(c.heard) {
		return unclear
	}
	return said
}

// understand goes through what was heard: the command has started, it has said
// something, it has ended.
func (c *call) understand() saying {
	var outputs [2]int64
	for at := 0; at < c.told; {
		kind := wire.FrameType(c.heard[at])
		if !expected(kind, at == 0) {
			return unclear
		}
		payload, whole := payloadOf(c.heard[at:c.told])
		if !whole {
			return silence
		}
		at += wire.HeaderSize + len(payload)
		switch kind {
		case wire.FrameStarted:
			c.started = true
		case wire.FrameExit:
			if at == c.told && c.ends(payload, outputs) && c.show() {
				return end
			}
			return unclear
		default:
			c.spoken = true
			outputs[kind-wire.FrameStdout] += int64(len(payload))
		}
	}
	return silence
}

// expected tells whether a frame may come.
func expected(kind wire.FrameType, first bool) bool {
	if first {
		return kind == wire.FrameStarted
	}
	return kind == wire.FrameStdout || kind == wire.FrameStderr || kind == wire.FrameExit
}

// payloadOf is that of the first frame.
func payloadOf(frames []byte) (payload []byte, whole bool) {
	if len(frames) < wire.HeaderSize {
		return nil, false
	}
	size := binary.BigEndian.Uint32(frames[1:])
	frames = frames[wire.HeaderSize:]
	if uint64(size) > uint64(len(frames)) {
		return nil, false
	}
	return frames[:size], true
}

// ends reads the exit of a command that has said so much.
func (c *call) ends(payload []byte, outputs [2]int64) bool {
	var exit wire.Exit
	if !exit.ReadNumbers(payload) || exit.Stdout != outputs[0] || exit.Stderr != outputs[1] {
		return false
	}
	c.code = min(max(exit.Code, 0), 255)
	return true
}

// maxInput is how much input goes into one frame: a socket with room for the least
// takes that whole, or nothing of it.
const maxInput = 2 << 10

// passInput passes input on, or its end. What the guest does not take at once the
// whole program finds.
func (c *call) passInput() bool {
	n, ok := c.input.read(c.typed[wire.HeaderSize:])
	if !ok {
		return false
	}
	kind := wire.FrameStdin
	if n == 0 {
		kind = wire.FrameStdinEOF
	}
	wire.PutHeader(c.typed[:], kind, n)
	if !c.conn.send(c.typed[:wire.HeaderSize+n]) {
		c.owed = n
		return false
	}
	c.ended = n == 0
	return true
}
