package probe

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

func network() findings.Network {
	n := findings.Network{Routes: routes(), Servers: nameServers()}
	n.Interfaces = capped(interfaces())
	for _, address := range slices.Concat(findings.Metadata(), findings.Internet(), n.Servers) {
		n.Reach = append(n.Reach, findings.Attempt{Name: address, Error: errorText(hasRoute(address))})
	}
	n.Egress = egress()
	return n
}

// interfaces returns the names of all interfaces, from a file: netlink is refused in a
// browser's sandbox.
func interfaces() (found []string) {
	for _, line := range lines("/proc/self/net/dev") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			found = append(found, strings.TrimSpace(name))
		}
	}
	return found
}

// routes returns the interfaces of routes, except loopback.
func routes() (found []string) {
	for i, line := range lines("/proc/self/net/route") {
		if fields := strings.Fields(line); i > 0 && len(fields) > 1 && fields[0] != "lo" {
			found = append(found, fields[0])
		}
	}
	for _, line := range lines("/proc/self/net/ipv6_route") {
		if fields := strings.Fields(line); len(fields) == 10 && fields[9] != "lo" {
			found = append(found, fields[9])
		}
	}
	return capped(found)
}

func nameServers() (found []string) {
	for _, line := range lines("/etc/resolv.conf") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
			found = append(found, fields[1])
		}
	}
	return found[:min(len(found), 8)]
}

// hasRoute fails if the kernel has no route to an address. Connecting a datagram socket
// sends nothing; a stream socket is tried only if that fails, and cannot send then either.
func hasRoute(address string) error {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return unix.EINVAL
	}
	if err := connect(parsed, unix.SOCK_DGRAM); err == nil {
		return nil
	}
	return connect(parsed, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
}

func connect(address netip.Addr, kind int) error {
	const port = 80
	address = address.Unmap()
	family, target := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: address.As16()})
	if address.Is4() {
		family, target = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: address.As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, target)
}
