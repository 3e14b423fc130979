package proxy

import (
	"context"
	"errors"
	"net"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

var errPeerClosed = errors.New("the upstream has closed the connection")

// keptConn is a connection to the upstream. Once the upstream has closed its side
// a write fails with nothing written, so that net/http sends the request over
// another connection instead of one that closed while it was kept.
type keptConn struct{ *socket.Conn }

// Write implements net.Conn.
func (c keptConn) Write(b []byte) (int, error) {
	if c.PeerClosed() {
		return 0, errPeerClosed
	}
	return c.Conn.Write(b)
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// keepable makes the connections of a dialer keptConns.
func keepable(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if plain, ok := socket.Wrap(conn).(*socket.Conn); ok {
			return keptConn{plain}, nil
		}
		return conn, nil
	}
}
