package spawn

import (
	"sync"

	"golang.org/x/sys/unix"
)

// stackSize is enough for what a kernel saves when a signal comes.
const stackSize = 16 << 10

// stackPool are those on which children handle signals while they share our memory.
// Signals rarely come, so they are memory that only exists once it is used, which
// the collector's would not be.
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
