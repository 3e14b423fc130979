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
	"slices"
)

// socketTable is the path of a list of the sockets in the sandbox's network: tcp, tcp6, udp
// or udp6.
var socketTable = func(name string) string { return "/proc/self/net/" + name }

// peerSocket returns the socket at the other end of a connection within the sandbox, as
// links in /proc/PID/fd name it, or nothing.
func peerSocket(conn net.Conn) []string {
	ours, err := netip.ParseAddrPort(conn.LocalAddr().String())
	theirs, err2 := netip.ParseAddrPort(conn.RemoteAddr().String())
	if errors.Join(err, err2) != nil {
		return nil
	}
	if ours.Addr().Is4() {
		if found := socketsIn(socketTable("tcp"), is(theirs), is(ours)); len(found) > 0 {
			return found
		}
		// The other end may be an IPv6 socket with a mapped IPv4 address.
		theirs, ours = mapped(theirs), mapped(ours)
	}
	return socketsIn(socketTable("tcp6"), is(theirs), is(ours))
}

// senderSockets returns the sockets that may have sent a datagram: those with its port
// that are bound to its address or to any, and connected to its destination or not at
// all. More than one can share a port.
func senderSockets(from, to netip.AddrPort) []string {
	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	v4 := socketsIn(socketTable("udp"), either(from, any4, from.Port()), either(to, any4, 0))
	v6 := socketsIn(socketTable("udp6"), append(either(mapped(from), any6, from.Port()), is(netip.AddrPortFrom(mappedAny, from.Port()))...),
		append(either(mapped(to), any6, 0), is(netip.AddrPortFrom(mappedAny, 0))...))
	return append(v4, v6...)
}

// mappedAny is 0.0.0.0 as IPv6 sockets have it.
var mappedAny = netip.AddrFrom16(netip.IPv4Unspecified().As16())

// is returns the kernel's text of one address.
func is(a netip.AddrPort) [][]byte { return [][]byte{[]byte(kernelAddr(a))} }

// either returns the kernel's text of an address, and of the unspecified one with a port.
func either(a netip.AddrPort, unspecified netip.Addr, port uint16) [][]byte {
	return append(is(a), is(netip.AddrPortFrom(unspecified, port))...)
}

func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// socketsIn finds sockets by their two addresses in one of the kernel's tables:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	 0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 65534        0 20481 …
func socketsIn(table string, local, remote [][]byte) (found []string) {
	file, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer file.Close()
	port := local[0][len(local[0])-len(":0000"):]
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), port) {
			continue
		}
		f := bytes.Fields(lines.Bytes())
		if len(f) > 9 && contains(local, f[1]) && contains(remote, f[2]) && string(f[9]) != "0" {
			found = append(found, "socket:["+string(f[9])+"]")
		}
	}
	return found
}

func contains(addresses [][]byte, a []byte) bool {
	return slices.ContainsFunc(addresses, func(b []byte) bool { return bytes.Equal(a, b) })
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
