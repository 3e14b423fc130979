package h1

import (
	"net"
	"time"
)

// LingerTime and LingerBytes are how long and how much is read from a caller that was
// refused while it was sending. Closing at once would send an RST, at which its kernel
// discards the answer.
const (
	LingerTime  = time.Second
	LingerBytes = 1 << 20
)

// Linger closes our half of a connection and reads on for a moment, so that the caller
// gets the answer before an RST.
func Linger(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	if conn.SetReadDeadline(time.Now().Add(LingerTime)) != nil {
		return
	}
	var waste [4 << 10]byte
	for read := 0; read < LingerBytes; {
		n, err := conn.Read(waste[:])
		if err != nil {
			return
		}
		read += n
	}
}
