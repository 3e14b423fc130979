package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultConnectTimeout is the time to resolve a name and to connect.
	DefaultConnectTimeout = 30 * time.Second
	// MaxAddresses is the most addresses that a name may have.
	MaxAddresses = 64
)

// Network resolves names and connects to addresses: the host's own network, or
// that of a sandbox.
type Network interface {
	Lookup(ctx context.Context, host string) ([]netip.Addr, error)
	Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Dialer resolves a name, checks all of its addresses, and connects to one of
// those that it checked.
type Dialer struct {
	Network Network       // nil: the host's own
	Rule    Rule          // nil: every address is permitted but those of metadata services
	Timeout time.Duration // to resolve and connect; 0: DefaultConnectTimeout
}

// DialContext connects to "host:port". It has the form that net/http wants.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Network == nil && d.Rule == nil { // net's own dialer tries IPv4 and IPv6 side by side
		plain := net.Dialer{Timeout: cmp.Or(d.Timeout, DefaultConnectTimeout), ControlContext: refuseMetadata}
		return plain.DialContext(ctx, network, address)
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q is not a number below 65536", text)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, DefaultConnectTimeout))
	defer cancel()
	addresses, err := d.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	conn, _, err := d.connect(ctx, addresses, uint16(port))
	return conn, err
}

// connect tries the addresses in order. Each has an equal share of the time
// that is left, so one that does not answer leaves time for the next.
func (d *Dialer) connect(ctx context.Context, addresses []netip.Addr, port uint16) (net.Conn, netip.AddrPort, error) {
	var first error
	for i, a := range addresses {
		to := netip.AddrPortFrom(a, port)
		conn, err := d.connectOne(ctx, to, len(addresses)-i)
		if err == nil {
			return conn, to, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, netip.AddrPort{}, first
}

func (d *Dialer) connectOne(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return d.network().Connect(ctx, to)
}

// Resolve returns the addresses of a host if the rule permits every one of them.
func (d *Dialer) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = []netip.Addr{literal}
	} else if addresses, err = d.network().Lookup(ctx, host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 || len(addresses) > MaxAddresses {
		return nil, fmt.Errorf("host %q has %d addresses", strings.TrimSuffix(host, "."), len(addresses))
	}
	return d.check(host, addresses)
}

// check returns the addresses in their plain form if the rule permits every one.
func (d *Dialer) check(host string, addresses []netip.Addr) ([]netip.Addr, error) {
	rule := d.Rule
	if rule == nil {
		rule = NotMetadata
	}
	permitted := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		permitted[i] = a.Unmap()
		if err := rule(permitted[i]); err != nil {
			return nil, fmt.Errorf("host %q, %w", strings.TrimSuffix(host, "."), err)
		}
	}
	return permitted, nil
}

func (d *Dialer) network() Network {
	if d.Network == nil {
		return hostNetwork{}
	}
	return d.Network
}

// hostNetwork is this host's own network.
type hostNetwork struct{}

// Lookup resolves a name. Its errors do not have the address of the resolver,
// because a sandbox may see them.
func (hostNetwork) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if failed, ok := errors.AsType[*net.DNSError](err); ok {
		reason := failed.Err
		if failed.IsNotFound {
			reason = "not found"
		}
		return nil, fmt.Errorf("host %q: %s", strings.TrimSuffix(host, "."), reason)
	}
	return addresses, err
}

func (hostNetwork) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
