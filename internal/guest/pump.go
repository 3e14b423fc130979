package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

// pump copies one output of a process from its pipe into a ring.
type pump struct {
	file  *os.File
	out   *output
	ring  int
	done  chan struct{} // closed when the ring is complete
	ended bool          // no process has the pipe open; valid when done is closed
}

func newPump(file *os.File, out *output, ring int) *pump {
	p := &pump{file: file, out: out, ring: ring, done: make(chan struct{})}
	go p.run()
	return p
}

// run reads until the output ends, or until release. After release it copies what is in
// the pipe, and discards what descendants write later: closing the pipe would send them
// SIGPIPE.
func (p *pump) run() {
	defer p.file.Close()
	for p.move(true) {
	}
	_ = p.file.SetReadDeadline(time.Time{})
	for moved := 0; moved < maxPipe && p.move(false); moved++ {
	}
	close(p.done)
	for !p.ended && p.discard() {
	}
}

// maxPipe is how many buffers a pipe can hold at most, without privileges.
const maxPipe = (1 << 20) / wire.MaxFrame

// release makes run stop waiting for the end of output.
func (p *pump) release() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

// move copies what one read returns. It returns false at the end of the output, on
// release, and without wait if the pipe is empty.
func (p *pump) move(wait bool) bool {
	var c *buffer.Frame
	n := buffer.ReadReady(p.file, wait, func(fd int) (int, error) {
		c = buffer.Get()
		n, err := unix.Read(fd, c[:wire.MaxFrame])
		if n <= 0 {
			buffer.Put(c)
		}
		return n, err
	})
	if n <= 0 {
		p.ended = p.ended || n == 0
		return false
	}
	p.out.write(p.ring, c[:n])
	buffer.Put(c)
	return true
}

func (p *pump) discard() bool {
	var trash [512]byte
	return buffer.ReadReady(p.file, true, func(fd int) (int, error) { return unix.Read(fd, trash[:]) }) > 0
}
