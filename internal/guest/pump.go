package guest

import (
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// chunks are the buffers between a pipe and a ring, and between a ring and the
// wire. They are only held while bytes move: a quiet process holds none.
var chunks = sync.Pool{New: func() any { return new([wire.HeaderSize + wire.MaxFrame]byte) }}

// pump moves one output of a process from its pipe into a ring.
type pump struct {
	file *os.File
	out  *output
	ring int
	done chan struct{} // closed when the ring has got all it will get
}

func newPump(file *os.File, out *output, ring int) *pump {
	p := &pump{file: file, out: out, ring: ring, done: make(chan struct{})}
	go p.run()
	return p
}

// run reads until the output ends, or until release. Then what is still in the
// pipe is taken along, and whatever descendants write later is swallowed: to
// close the pipe under them would kill them.
func (p *pump) run() {
	defer p.file.Close()
	for p.move(true) {
	}
	if err := p.file.SetReadDeadline(time.Time{}); err == nil {
		for moved := 0; moved < pipeSize && p.move(false); moved++ {
		}
	}
	close(p.done)
	p.swallow()
}

// pipeSize bounds the reads that empty a pipe: one a page, for the usual 64 KiB.
const pipeSize = 16

// release ends the waiting for output that may never end.
func (p *pump) release() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

// move moves what one read gives. It returns false at the end of the output,
// on release, and if there is nothing and it shall not wait.
func (p *pump) move(wait bool) bool {
	chunk := (*[wire.HeaderSize + wire.MaxFrame]byte)(nil)
	n := readReady(p.file, wait, func(fd int) (int, error) {
		chunk = chunks.Get().(*[wire.HeaderSize + wire.MaxFrame]byte)
		n, err := unix.Read(fd, chunk[:wire.MaxFrame])
		if n <= 0 {
			chunks.Put(chunk)
		}
		return n, err
	})
	if n <= 0 {
		return false
	}
	p.out.write(p.ring, chunk[:n])
	chunks.Put(chunk)
	return true
}

func (p *pump) swallow() {
	for p.discard() {
	}
}

func (p *pump) discard() bool {
	var trash [512]byte
	return readReady(p.file, true, func(fd int) (int, error) { return unix.Read(fd, trash[:]) }) > 0
}

// readReady calls read when file has something to read, without a buffer being
// held while it has not.
func readReady(file *os.File, wait bool, read func(fd int) (int, error)) int {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = conn.Read(func(fd uintptr) bool {
		for {
			var errno error
			n, errno = read(int(fd))
			if errno != unix.EINTR {
				return !wait || errno != unix.EAGAIN
			}
		}
	})
	if err != nil {
		return 0
	}
	return n
}
