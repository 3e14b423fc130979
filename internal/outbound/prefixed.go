package outbound

import "net"

// Prefixed returns a connection whose first bytes are those given, which were
// read from it before.
func Prefixed(conn net.Conn, first []byte) net.Conn {
	if len(first) == 0 {
		return conn
	}
	return &prefixedConn{Conn: conn, first: first}
}

type prefixedConn struct {
	net.Conn
	first []byte
}

func (c *prefixedConn) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}

// CloseWrite sends that no more will be written. A connection that cannot send
// that is closed.
func (c *prefixedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
