package dockercli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
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
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name in the middle may contain anything; what follows is numbers.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(string(boot)) + ":" + fields[start], nil
}

// Alive tells whether the guest's process runs, and may.
func (g *Guest) Alive() bool {
	if g == nil || g.Paused {
		return false
	}
	birth, err := birthOf(g.PID)
	return err == nil && birth == g.Birth
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
