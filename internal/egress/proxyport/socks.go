package proxyport

import (
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
)

// The numbers of SOCKS5 (RFC 1928).
const (
	socksVersion    = 5
	socksNoAuth     = 0
	socksNoMethod   = 0xff
	socksConnect    = 1
	socksIPv4       = 1
	socksName       = 3
	socksIPv6       = 4
	socksGranted    = 0
	socksFailed     = 1
	socksNotAllowed = 2
	socksBadCommand = 7
	socksBadAddress = 8
)

// readSOCKS reads the methods and the request. Only CONNECT without a password
// is served.
func (r *Request) readSOCKS() error {
	if err := r.agreeOnMethod(); err != nil {
		return err
	}
	var head [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(r.reader, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion || head[2] != 0 {
		return r.reject(0, socksFailed, "the SOCKS request cannot be read")
	}
	if err := r.readTarget(head[3]); err != nil {
		return err
	}
	if head[1] != socksConnect {
		return r.reject(0, socksBadCommand, "only CONNECT of SOCKS5 is served")
	}
	return nil
}

func (r *Request) agreeOnMethod() error {
	var head [2]byte // version, number of methods
	if _, err := io.ReadFull(r.reader, head[:]); err != nil {
		return err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r.reader, methods); err != nil {
		return err
	}
	if slices.Contains(methods, socksNoAuth) {
		_, err := r.conn.Write([]byte{socksVersion, socksNoAuth})
		return err
	}
	if _, err := r.conn.Write([]byte{socksVersion, socksNoMethod}); err != nil {
		return err
	}
	return &Refusal{"the SOCKS client wants a password"}
}

// readTarget reads the host and the port. An address is read as text.
func (r *Request) readTarget(kind byte) (err error) {
	switch kind {
	case socksName:
		r.Host, err = r.readName()
	case socksIPv4:
		r.Host, err = r.readAddress(4)
	case socksIPv6:
		r.Host, err = r.readAddress(16)
	default:
		return r.reject(0, socksBadAddress, "the SOCKS request has an unknown kind of address")
	}
	if err != nil {
		return err
	}
	var port [2]byte
	_, err = io.ReadFull(r.reader, port[:])
	r.Port = int(binary.BigEndian.Uint16(port[:]))
	return err
}

func (r *Request) readName() (string, error) {
	size, err := r.reader.ReadByte()
	if err != nil {
		return "", err
	}
	name := make([]byte, size)
	_, err = io.ReadFull(r.reader, name)
	return string(name), err
}

func (r *Request) readAddress(size int) (string, error) {
	raw := make([]byte, size)
	if _, err := io.ReadFull(r.reader, raw); err != nil {
		return "", err
	}
	a, _ := netip.AddrFromSlice(raw)
	return a.String(), nil
}

// replySOCKS writes a reply with no address: no client needs it.
func (r *Request) replySOCKS(reply byte) error {
	_, err := r.conn.Write([]byte{socksVersion, reply, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
