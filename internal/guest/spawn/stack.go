package spawn

import (
	"sync"

	"golang.org/x/sys/unix"
)

// stackSize is enough for the frame of a signal.
const stackSize = 16 << 10

// stackPool keeps the signal stacks of children that share our memory. Signals are rare,
// so the stacks are mapped memory, whose pages exist only once they are used.
type stackPool struct {
	mu   sync.Mutex
	free [][]byte
}

var signalStacks stackPool

func (s *stackPool) get() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		stack := s.free[n-1]
		s.free = s.free[:n-1]
		return stack, nil
	}
	return unix.Mmap(-1, 0, stackSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func (s *stackPool) put(stack []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, stack)
}
