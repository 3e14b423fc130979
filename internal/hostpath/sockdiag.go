package hostpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// waitingSocket is a socket of this network namespace that has a file, and that
// programs can connect to.
type waitingSocket struct {
	name          string // as it was made: it need not be absolute
	inode, device uint32 // of the file, as the kernel shortens them
}

// is reports whether a file is the socket. File systems without a device of
// their own may show programs another one than the kernel's.
func (s waitingSocket) is(st *unix.Stat_t) bool {
	if KindOf(st.Mode) != KindSocket || uint32(st.Ino) != s.inode {
		return false
	}
	major, minor := unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))
	const minorBits = 20
	return major == 0 || major<<minorBits|minor == s.device
}

// The kernel's words for a request of unix sockets (linux/unix_diag.h).
const (
	byFamily     = 20 // SOCK_DIAG_BY_FAMILY
	showName     = 1
	showFile     = 2
	attrName     = 0
	attrFile     = 1
	stateClosed  = 7 // datagram sockets that are not connected
	stateListens = 10
	diagHeader   = 16 // struct unix_diag_msg
)

// waitingSockets asks the kernel for the sockets of this network namespace.
func waitingSockets() ([]waitingSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, diagRequest(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	var found []waitingSocket
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return found, nil
			case unix.NLMSG_ERROR:
				return nil, fmt.Errorf("list of sockets: %w", diagError(m.Data))
			}
			if s, ok := parseSocket(m.Data); ok {
				found = append(found, s)
			}
		}
	}
}

// diagRequest is a header and struct unix_diag_req.
func diagRequest() []byte {
	const size = unix.SizeofNlMsghdr + 24
	request := binary.NativeEndian.AppendUint32(nil, size)
	request = binary.NativeEndian.AppendUint16(request, byFamily)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, make([]byte, 8)...) // sequence and port
	request = append(request, unix.AF_UNIX, 0, 0, 0)
	request = binary.NativeEndian.AppendUint32(request, 1<<stateClosed|1<<stateListens)
	request = binary.NativeEndian.AppendUint32(request, 0) // any socket
	request = binary.NativeEndian.AppendUint32(request, showName|showFile)
	return append(request, make([]byte, 8)...) // cookie
}

func diagError(data []byte) error {
	if len(data) < 4 {
		return unix.EBADMSG
	}
	return syscall.Errno(-int32(binary.NativeEndian.Uint32(data)))
}

// parseSocket reads one answer. It is false for a socket without a file.
func parseSocket(data []byte) (s waitingSocket, ok bool) {
	const attrHeader, align = 4, 3
	if len(data) < diagHeader {
		return s, false
	}
	for rest := data[diagHeader:]; len(rest) >= attrHeader; {
		length, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
		if length < attrHeader || length > len(rest) {
			return s, false
		}
		switch value := rest[attrHeader:length]; {
		case kind == attrName:
			s.name = strings.TrimRight(string(value), "\x00")
		case kind == attrFile && len(value) >= 8:
			s.inode, s.device, ok = binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:]), true
		}
		rest = rest[min((length+align)&^align, len(rest)):]
	}
	return s, ok
}
