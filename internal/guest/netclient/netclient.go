// Package netclient resolves names and opens connections in a sandbox's network, for the
// host. Each is a command of the guest program that the host runs inside, with the
// rights of any other program there.
//
// Which names and addresses are allowed is decided by the host.
package netclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	// ConnectTimeout bounds a connect.
	ConnectTimeout = 10 * time.Second
	// lookupTimeout bounds a lookup.
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

// Connect connects to an address and port within a time, and copies bytes both ways until
// both sides have ended.
func Connect(address string, within time.Duration, in io.Reader, out io.Writer) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	conn, err := dial(to.String(), within)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The host waits for this byte; the bytes after it are the connection's.
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

// dialSteps is into how many parts the time of a connection is divided: while this process
// gets no processor, one part passes at most.
const dialSteps = 10

// dial connects within a time that this process was given to run in. A connection that was
// made while it waited for a processor counts.
func dial(address string, within time.Duration) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		conn, err := net.Dial("tcp", address) //nolint:noctx // the process ends when it is given up
		done <- dialed{conn, err}
	}()
	for range dialSteps {
		select {
		case d := <-done:
			return d.conn, d.err
		case <-time.After(within / dialSteps):
		}
	}
	return nil, fmt.Errorf("no connection to %s within %v: %w", address, within, os.ErrDeadlineExceeded)
}

// Ready is the byte that Connect writes before those of the connection.
const Ready = '+'
