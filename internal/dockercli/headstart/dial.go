package headstart

import (
	"strconv"
	"unsafe"

	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"golang.org/x/sys/unix"
)

// dial connects to the guest, and makes sure that it is the guest. Its socket is
// where hostile code can write: the last element of its path is not followed if it
// is a link, and must be a socket.
func (c *call) dial(e *entry.Entry) bool {
	var socket descriptor
	if !socket.open(c.path(e.Socket), unix.O_PATH|unix.O_NOFOLLOW) {
		return false
	}
	connected := socket.kind() == unix.S_IFSOCK && c.conn.connect(&socket)
	socket.close()
	pid, ok := entry.Number(e.PID)
	return connected && ok && c.conn.peer() == pid && c.born(e)
}

// connect connects to a socket that is held by its path, at once or not at all.
func (d *descriptor) connect(socket *descriptor) bool {
	address := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	path := unsafe.Slice((*byte)(unsafe.Pointer(&address.Path)), len(address.Path))
	used := strconv.AppendInt(append(path[:0], "/proc/self/fd/"...), int64(socket.number()), 10)
	size := unsafe.Offsetof(address.Path) + uintptr(len(used)) + 1
	return d.socket() && d.dial(unsafe.Pointer(&address), size)
}

// born tells whether the guest's process is the one that the record means.
func (c *call) born(e *entry.Entry) bool {
	const most = 1 << 10
	boot, _ := c.readFile(most, "/proc/sys/kernel/random/boot_id")
	stat, _ := c.readFile(most, "/proc/", e.PID, "/stat")
	return entry.IsBirth(e.Birth, boot, stat)
}
