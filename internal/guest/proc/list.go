package proc

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// List lists the processes in /proc. It holds /proc open, so that it works when no
// descriptors are left.
type List struct {
	mu   sync.Mutex
	proc int
	buf  [4 << 10]byte
}

// NewList opens /proc.
func NewList() (*List, error) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/proc", Err: err}
	}
	return &List{proc: fd}, nil
}

// Others reports whether there is a process other than the caller's.
func (c *List) Others() bool {
	found := false
	c.Each(func(int) { found = true })
	return found
}

// Each calls f for every process but the caller's, in the kernel's order. It reads small
// batches, so that few pids are stale when f is called.
func (c *List) Each(f func(pid int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := unix.Seek(c.proc, 0, unix.SEEK_SET); err != nil {
		return
	}
	self := os.Getpid()
	var names []string
	for {
		n, err := unix.ReadDirent(c.proc, c.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		_, _, names = unix.ParseDirent(c.buf[:n], -1, names[:0])
		for _, name := range names {
			if name[0] < '1' || name[0] > '9' {
				continue
			}
			if pid, err := strconv.Atoi(name); err == nil && pid != self {
				f(pid)
			}
		}
	}
}
