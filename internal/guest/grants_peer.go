package guest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proc"
)

// maxScannedFDs bounds the descriptors that are examined to find the process at the
// other end of a connection. Beyond that the caller is unknown.
const maxScannedFDs = 1 << 16

// ofPeer returns the id of the open grant that the process at the other end of an
// accepted connection was started under, or "". If several processes hold that end, all
// must have been started under the same grant: one that was not may have sent the
// descriptor to one that was. (A process that is not dumpable does not show its
// descriptors, and so has no grant. It cannot hold an end secretly beside a process of
// a grant unless that process received it, and a process that receives descriptors
// could as well pass on bytes.)
func (gs *grants) ofPeer(conn net.Conn) string {
	if gs.none() {
		return ""
	}
	inode, ok := peerSocket(conn)
	if !ok {
		return ""
	}
	id, owned, left := "", false, maxScannedFDs
	gs.walker.Procs.Each(func(pid int) {
		holds, lowest, highest := gs.holder(pid, inode, &left)
		if !holds {
			return
		}
		its := ""
		if lowest == highest { // a process that lowered its limits has no grant
			its = gs.byMark(lowest)
		}
		if owned && its != id {
			its = ""
		}
		id, owned = its, true
	})
	if left <= 0 {
		return ""
	}
	return id
}

// holder reports whether pid holds the socket, and which execs it may belong to. The
// marks are read between opening the process's directory and reading from it: reading
// fails once the process is gone, so they are not those of a new process with its pid.
func (gs *grants) holder(pid int, inode string, left *int) (holds bool, lowest, highest proc.Mark) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return false, 0, 0
	}
	defer dir.Close()
	lowest, highest, ok := gs.lineage.MarksOf(pid)
	if !ok {
		return false, 0, 0
	}
	link := make([]byte, len(inode)+1)
	for *left > 0 {
		names, err := dir.Readdirnames(64)
		*left -= len(names)
		for _, name := range names {
			n, err := unix.Readlinkat(int(dir.Fd()), name, link)
			if err == nil && string(link[:n]) == inode {
				return true, lowest, highest
			}
		}
		if err != nil {
			break
		}
	}
	return false, 0, 0
}

// peerSocket returns the socket at the other end of a connection within the sandbox, as
// links in /proc/PID/fd name it.
func peerSocket(conn net.Conn) (string, bool) {
	ours, err := netip.ParseAddrPort(conn.LocalAddr().String())
	theirs, err2 := netip.ParseAddrPort(conn.RemoteAddr().String())
	if errors.Join(err, err2) != nil {
		return "", false
	}
	if ours.Addr().Is4() {
		if inode, ok := socketIn("/proc/self/net/tcp", theirs, ours); ok {
			return inode, true
		}
		// The other end may be an IPv6 socket with a mapped IPv4 address.
		theirs, ours = mapped(theirs), mapped(ours)
	}
	return socketIn("/proc/self/net/tcp6", theirs, ours)
}

func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// socketIn finds a socket by its two addresses in one of the kernel's tables:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	 0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 65534        0 20481 …
func socketIn(table string, local, remote netip.AddrPort) (string, bool) {
	file, err := os.Open(table)
	if err != nil {
		return "", false
	}
	defer file.Close()
	want, other := []byte(kernelAddr(local)), []byte(kernelAddr(remote))
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), want) {
			continue
		}
		f := bytes.Fields(lines.Bytes())
		if len(f) > 9 && bytes.Equal(f[1], want) && bytes.Equal(f[2], other) && string(f[9]) != "0" {
			return "socket:[" + string(f[9]) + "]", true
		}
	}
	return "", false
}

// kernelAddr formats an address as the kernel does: as 32-bit words in native order.
func kernelAddr(a netip.AddrPort) string {
	b := a.Addr().AsSlice()
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	return string(bytes.ToUpper([]byte(hex.EncodeToString(b)))) + ":" + hex4(a.Port())
}

func hex4(n uint16) string {
	return string(bytes.ToUpper(hex.AppendEncode(nil, binary.BigEndian.AppendUint16(nil, n))))
}
