// Package netclient lets the host use a sandbox's network as the sandbox does: to
// look a name up, and to connect to an address. Each is a program of its own
// that the host runs inside, without any right that other programs there lack.
//
// What may be looked up or connected to is the host's decision, not taken here.
package netclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	// connectTimeout bounds how long a connection may take to be made.
	connectTimeout = 10 * time.Second
	// lookupTimeout bounds how long a name may take to be found.
	lookupTimeout = 10 * time.Second
)

// Lookup writes the addresses of a host, one a line.
func Lookup(ctx context.Context, host string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true}
	addresses, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if _, err := fmt.Fprintln(out, a.Unmap()); err != nil {
			return err
		}
	}
	return nil
}

// Connect connects to an address and port, and passes bytes both ways until
// both sides have ended.
func Connect(ctx context.Context, address string, in io.Reader, out io.Writer) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	// The host waits for this byte: what follows is the connection.
	if _, err := out.Write([]byte{Ready}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Ready is the byte that Connect writes before those of the connection.
const Ready = '+'
