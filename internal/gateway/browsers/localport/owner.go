package localport

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// isOwner reports whether the other end of a request's connection belongs to the user of
// this process.
func isOwner(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(fmt.Stringer)
	if !ok {
		return false
	}
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	there, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	uid, ok := userOf("/proc/net/tcp", there, here)
	return ok && uid == os.Geteuid()
}

// The columns of a table of the kernel.
const (
	columnLocal, columnRemote, columnUser = 1, 2, 7
)

// userOf returns the user whose socket has these two ends, by the kernel's table.
func userOf(table string, local, remote netip.AddrPort) (uid int, found bool) {
	f, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	from, to := kernelForm(local), kernelForm(remote)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) > columnUser && columns[columnLocal] == from && columns[columnRemote] == to {
			uid, err := strconv.Atoi(columns[columnUser])
			return uid, err == nil
		}
	}
	return 0, false
}

// kernelForm writes an IPv4 address as the kernel's table has it: the address as a number
// in this machine's order of bytes.
func kernelForm(a netip.AddrPort) string {
	four := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(four[:]), a.Port())
}
