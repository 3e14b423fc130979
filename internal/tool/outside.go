package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
)

const (
	// maxAnswer bounds what looking a name up prints.
	maxAnswer = 16 << 10
	// maxHostName is the longest name there can be.
	maxHostName = 253
	// connected is what the guest writes before the bytes of a connection.
	connected = '+'
)

// outside is the network of a sandbox, used through the guest's program inside.
type outside struct{ at *Location }

// Lookup implements outbound.Network.
func (o *outside) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if len(host) > maxHostName {
		return nil, errors.New("the name of the host is too long")
	}
	var out, errs bytes.Buffer
	result, err := o.at.Machine.Exec(ctx, &machine.Command{
		Argv: []string{o.at.Guest, "lookup", host}, Dir: "/", Stdout: &out, Stderr: &errs, OutputLimit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 {
		return nil, fmt.Errorf("host %s: %s", quote(host), said(errs.Bytes()))
	}
	var addresses []netip.Addr
	for line := range strings.Lines(out.String()) {
		a, err := netip.ParseAddr(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("host %s: the sandbox answered something that is no address", quote(host))
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

// said is the first line of what a program said went wrong.
func said(errs []byte) string {
	line, _, _ := strings.Cut(clean(errs), "\n")
	if line == "" {
		return "not found"
	}
	short, _ := cutLine(line, 200)
	return short
}

// Connect implements outbound.Network.
func (o *outside) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ours, theirs := net.Pipe()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer theirs.Close()
		var errs bytes.Buffer
		_, err := o.at.Machine.Exec(running, &machine.Command{
			Argv: []string{o.at.Guest, "connect", to.String()}, Dir: "/", Stdin: theirs, Stdout: theirs, Stderr: &limitedBuffer{Buffer: &errs},
			EndTree: true,
		})
		if err == nil {
			err = errors.New(said(errs.Bytes()))
		}
		ended <- err
	}()
	conn := &connection{Conn: ours, cancel: cancel}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var first [1]byte
	if _, err := io.ReadFull(ours, first[:]); err != nil || first[0] != connected {
		_ = conn.Close()
		return nil, fmt.Errorf("connection to %v: %w", to, errors.Join(ctx.Err(), <-ended))
	}
	return conn, nil
}

// connection ends the program inside when it is closed.
type connection struct {
	net.Conn
	cancel context.CancelFunc
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct{ *bytes.Buffer }

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := maxAnswer - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
