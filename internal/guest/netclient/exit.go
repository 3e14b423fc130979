package netclient

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/wire"
)

// closedErrors are those of connections that a filter on the way keeps from being made.
var closedErrors = []error{os.ErrDeadlineExceeded, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EPERM, syscall.EACCES}

// ExitCode returns the code that says why a connect failed.
func ExitCode(err error) int {
	for _, closed := range closedErrors {
		if errors.Is(err, closed) {
			if hasDefaultRoute(os.DirFS("/proc/self/net")) {
				return wire.ConnectClosed
			}
			return wire.ConnectNoRoute
		}
	}
	return wire.ConnectFailed
}

// hasDefaultRoute reports whether the tables of routes in a directory of /proc have a default
// route over an interface that is not the loopback.
func hasDefaultRoute(proc fs.FS) bool {
	const anywhere4, anywhere6 = "00000000", "00000000000000000000000000000000"
	v4, _ := fs.ReadFile(proc, "route") // Iface Destination Gateway Flags RefCnt Use Metric Mask …
	for line := range strings.Lines(string(v4)) {
		if f := strings.Fields(line); len(f) > 7 && f[0] != "lo" && f[1] == anywhere4 && f[7] == anywhere4 {
			return true
		}
	}
	v6, _ := fs.ReadFile(proc, "ipv6_route") // destination length … interface
	for line := range strings.Lines(string(v6)) {
		if f := strings.Fields(line); len(f) > 9 && f[9] != "lo" && f[0] == anywhere6 && f[1] == "00" {
			return true
		}
	}
	return false
}
