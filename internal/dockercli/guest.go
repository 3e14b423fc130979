package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// errStranger is a process that is not the guest it should be.
var errStranger = errors.New("the process at the other end is not the guest")

// NewGuest describes a guest that runs.
func NewGuest(socket string, pid int, lease string) *Guest {
	birth, err := birthOf(pid)
	if socket == "" || err != nil {
		return nil
	}
	return &Guest{Socket: socket, PID: pid, Birth: birth, Lease: lease}
}

// birthOf tells processes apart that have the same id one after the other: the
// run of the kernel, and the time of the start in it.
func birthOf(pid int) (string, error) {
	boot, err := readProc("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	start := startTime(stat)
	if start == "" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimRight(boot, "\n") + ":" + start, nil
}

// readProc reads a short file of the kernel's, which comes in one piece. It
// saves the calls by which package os finds out what kind of file it is.
func readProc(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var text [1024]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return string(text[:n]), nil
}

// Alive tells whether the guest's process runs, and may.
func (g *Guest) Alive() bool {
	if g == nil || g.Paused {
		return false
	}
	birth, err := birthOf(g.PID)
	return err == nil && birth == g.Birth
}

// leaving is how long a guest that has let go of its wires may take to be gone.
const leaving = 5 * time.Second

// gone tells whether the guest's process is no more, for somebody whose wire has
// ended: that may have been a moment before.
func (g *Guest) gone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	for g.Alive() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// Dial opens a wire to the guest, and makes sure that it is the guest's.
func (g *Guest) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := wire.DialSocket(ctx, g.Socket)
	if err != nil {
		return nil, err
	}
	pid, err := wire.PeerPID(conn)
	if err == nil && (pid != g.PID || !g.Alive()) {
		err = fmt.Errorf("%w: it is process %d, not %d", errStranger, pid, g.PID)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
