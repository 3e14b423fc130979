package guest

import (
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

// drainResult is what is left in the pipes.
type drainResult int

const (
	drainedAll     drainResult = iota // nothing, and nothing more will come
	drainedSome                       // perhaps something later
	drainedTooMuch                    // perhaps something; maxShortOutput bytes or more were written so far
)

// drainPipes moves what is in the pipes to the rings, without waiting.
func (p *process) drainPipes() drainResult {
	result := drainedAll
	for i, fd := range p.stdio.pipes {
		result = max(result, p.drainPipe(fd, i))
	}
	return result
}

func (p *process) drainPipe(fd, ring int) drainResult {
	var some [512]byte // most commands write less, and need no buffer
	for {
		n, errno := readNow(fd, some[:])
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return drainedSome
		case n == 0:
			return drainedAll
		}
		p.out.write(ring, some[:n])
		if n == len(some) || p.out.total(ring) >= maxShortOutput {
			return p.drainLargePipe(fd, ring)
		}
	}
}

// drainLargePipe is drainPipe for more than 512 bytes. It stops before the ring is full,
// as no reader makes room: maxShortOutput and one more frame fit.
func (p *process) drainLargePipe(fd, ring int) drainResult {
	buf := buffer.Get()
	defer buffer.Put(buf)
	for p.out.total(ring) < maxShortOutput {
		n, errno := readNow(fd, buf[:wire.MaxFrame])
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return drainedSome
		case n == 0:
			return drainedAll
		default:
			p.out.write(ring, buf[:n])
		}
	}
	return drainedTooMuch
}
