package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

const (
	// egressTimeout bounds each attempt: a host that serves others does not answer.
	egressTimeout = 500 * time.Millisecond
	// resolverAddress and proxyAddress are where a host serves names.
	resolverAddress = "127.0.0.1:53"
	proxyAddress    = "127.0.0.1:3128"
)

var (
	errNoAnswer  = errors.New("no answer")
	errOnlyLocal = errors.New("an address of the sandbox")
)

// egress asks the resolver and the proxy of the sandbox for a public name. The probe was
// started under no grant, so neither may lead there.
func egress() []findings.Attempt {
	return []findings.Attempt{
		{Name: findings.PublicName + " by the resolver", Error: errorText(resolve())},
		{Name: findings.PublicName + " by the proxy", Error: errorText(tunnel())},
	}
}

// resolve returns nil if the resolver on loopback has an address beyond it.
func resolve() error {
	ctx, cancel := context.WithTimeout(context.Background(), egressTimeout)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, resolverAddress)
	}}
	found, err := resolver.LookupNetIP(ctx, "ip", findings.PublicName+".")
	if err != nil {
		return errNoAnswer
	}
	for _, a := range found {
		if !a.Unmap().IsLoopback() {
			return nil
		}
	}
	return errOnlyLocal
}

// tunnel returns nil if the proxy on loopback opens a tunnel.
func tunnel() error {
	dialer := net.Dialer{Timeout: egressTimeout}
	conn, err := dialer.Dial("tcp4", proxyAddress)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(egressTimeout))
	to := findings.PublicName + ":443"
	if _, err := io.WriteString(conn, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n"); err != nil {
		return err
	}
	answer := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return errNoAnswer
	}
	if !strings.HasSuffix(string(answer), " 200") {
		return errors.New(string(answer))
	}
	return nil
}
