package grant

import (
	"errors"
	"net"
)

// Carrier is a connection that carries a grant. A type that wraps connections may
// implement it, or return the inner one from a method NetConn, as package tls does.
type Carrier interface{ Grant() *Grant }

// Of returns the grant that a connection carries, or nil.
func Of(conn net.Conn) *Grant {
	for conn != nil {
		if carrier, ok := conn.(Carrier); ok {
			return carrier.Grant()
		}
		wrapper, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = wrapper.NetConn()
	}
	return nil
}

// bound is a connection under a grant.
type bound struct {
	net.Conn
	grant *Grant
}

// Grant implements Carrier.
func (b *bound) Grant() *Grant { return b.grant }

// NetConn returns the connection itself.
func (b *bound) NetConn() net.Conn { return b.Conn }

// CloseWrite shuts down the writing side, if the connection can.
func (b *bound) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close implements net.Conn.
func (b *bound) Close() error {
	b.grant.forget(b)
	return b.Conn.Close()
}
