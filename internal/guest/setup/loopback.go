package setup

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// EnableLoopback brings up the loopback interface of the new network namespace and adds
// the address of names to it.
func EnableLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return err
	}
	if err := addAddress(loopbackIndex, wire.NameInterface.As4()); err != nil {
		return fmt.Errorf("address %v: %w", wire.NameInterface, err)
	}
	return nil
}

// loopbackIndex is the index of the loopback interface in every network namespace.
const loopbackIndex = 1

// addAddress adds an address with a mask of 32 bits to an interface.
func addAddress(index uint32, address [4]byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, addressRequest(index, address), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return unix.EBADMSG
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// addressRequest returns the message: struct nlmsghdr, struct ifaddrmsg, and the address
// as the only attribute.
func addressRequest(index uint32, address [4]byte) []byte {
	const size = unix.SizeofNlMsghdr + unix.SizeofIfAddrmsg + unix.SizeofRtAttr + 4
	b := binary.NativeEndian.AppendUint32(make([]byte, 0, size), size)
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWADDR)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	b = append(b, make([]byte, 8)...) // sequence number and port
	b = append(b, unix.AF_INET, 32, 0, unix.RT_SCOPE_HOST)
	b = binary.NativeEndian.AppendUint32(b, index)
	b = binary.NativeEndian.AppendUint16(b, unix.SizeofRtAttr+4)
	b = binary.NativeEndian.AppendUint16(b, unix.IFA_LOCAL)
	return append(b, address[:]...)
}

// newProc creates the /proc of the sandbox. While it can still be written to, it lets
// every process listen on every port of the new network namespace.
func newProc(options string, attributes int) (int, error) {
	proc, err := newFilesystem("proc", options, attributes)
	if err != nil {
		return 0, err
	}
	if err := writeAt(proc, portStart, "0"); err != nil {
		unix.Close(proc)
		return 0, fmt.Errorf("%s: %w", portStart, err)
	}
	return proc, nil
}

// portStart is the first port that needs no capability.
const portStart = "sys/net/ipv4/ip_unprivileged_port_start"

func writeAt(dir int, name, text string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}
