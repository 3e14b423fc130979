package headstart

import (
	"encoding/binary"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// patience is how long the command is waited for here. Until then a signal just
// ends the program; whoever waits longer wants to be told.
const patience = 10 * time.Millisecond

// hear waits for the command to end, which it has to do without a word.
func (c *call) hear() (code int, over bool) {
	left := unix.NsecToTimespec(patience.Nanoseconds())
	for {
		fds := [2]unix.PollFd{{Fd: c.conn.number(), Events: unix.POLLIN}, {Fd: c.input.number(), Events: unix.POLLIN}}
		waiting := fds[:1]
		if c.line.stdin && c.started && !c.ended {
			waiting = fds[:]
		}
		switch {
		case !poll(waiting, &left):
			return 0, false
		case fds[0].Revents != 0:
			said := c.listen()
			if said != silence {
				return c.code, said == end
			}
		case !c.passEnd():
			return 0, false
		}
	}
}

// saying is what a guest has said up to now.
type saying uint8

const (
	silence saying = iota // nothing, or that the command has started
	words                 // something that is for others to understand
	end                   // that the command has ended
)

// listen hears what the guest has to say.
func (c *call) listen() saying {
	n, ok := c.conn.read(c.heard[c.told:])
	if !ok || n == 0 {
		return words
	}
	c.told += n
	if c.told == len(c.heard) {
		return words
	}
	return c.understand(c.heard[:c.told])
}

// understand knows two frames: Started, and the exit of a command that was
// silent.
func (c *call) understand(frames []byte) saying {
	for _, want := range [...]wire.FrameType{wire.FrameStarted, wire.FrameExit} {
		if len(frames) == 0 {
			return silence
		}
		if wire.FrameType(frames[0]) != want {
			return words
		}
		if len(frames) < wire.HeaderSize {
			return silence
		}
		size := binary.BigEndian.Uint32(frames[1:])
		frames = frames[wire.HeaderSize:]
		if uint64(size) > uint64(len(frames)) {
			return silence
		}
		if want == wire.FrameStarted {
			c.started = true
			frames = frames[size:]
			continue
		}
		if size != uint32(len(frames)) {
			return words
		}
	}
	var exit wire.Exit
	if !exit.ReadNumbers(frames) || exit.Stdout != 0 || exit.Stderr != 0 {
		return words
	}
	c.code = min(max(exit.Code, 0), 255)
	return end
}

// passEnd passes the end of the input on. Input itself is passed on by others:
// they find what was read of it.
func (c *call) passEnd() bool {
	n, ok := c.input.read(c.typed[:])
	if !ok || n > 0 {
		c.owed = n
		return false
	}
	var frame [wire.HeaderSize]byte
	wire.PutHeader(frame[:], wire.FrameStdinEOF, 0)
	c.ended = c.conn.send(frame[:])
	return c.ended
}
