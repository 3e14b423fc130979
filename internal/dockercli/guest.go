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

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// errNotGuest means that another process than the recorded guest listens.
var errNotGuest = errors.New("the process at the other end is not the guest")

// NewGuest describes a guest that runs.
func NewGuest(socket string, pid int, lease string) *Guest {
	birth, err := processStart(pid)
	if socket == "" || err != nil {
		return nil
	}
	return &Guest{Socket: socket, PID: pid, Start: birth, Lease: lease}
}

// processStart identifies a process beyond its reusable pid: the kernel's boot id
// and the process's start time.
func processStart(pid int) (string, error) {
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

// Alive reports whether the guest's process runs and is not paused.
func (g *Guest) Alive() bool {
	if g == nil || g.Paused {
		return false
	}
	birth, err := processStart(g.PID)
	return err == nil && birth == g.Start
}

// exitGrace is how long a guest may take to exit after it closed its connections.
const exitGrace = 5 * time.Second

// hasExited waits until the guest's process has exited, for a caller whose
// connection was closed: the process may end a moment later.
func (g *Guest) hasExited(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, exitGrace)
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
		err = fmt.Errorf("%w: it is process %d, not %d", errNotGuest, pid, g.PID)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
