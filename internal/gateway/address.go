package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrExposed is returned for a listen address on which traffic could be read by
// others.
var ErrExposed = errors.New("what is sent there could be read by others")

// networks are the networks on which connections without TLS are allowed.
type networks []netip.Prefix

// parseNetworks reads CIDRs and names of interfaces.
func parseNetworks(texts []string) (all networks, err error) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Masked())
			continue
		}
		of, err := interfaceNetworks(text)
		if err != nil {
			return nil, errhint.With(fmt.Errorf("gateway.trustedNetwork %q: %w", text, err), "write a network such as 10.0.0.0/24, or the name of an interface that is up")
		}
		all = append(all, of...)
	}
	return all, nil
}

func interfaceNetworks(name string) (all networks, err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, errors.New("it is no network, and no interface has this name")
	}
	addresses, err := link.Addrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Masked())
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the interface has no address")
	}
	return all, nil
}

// contain reports whether both ends are within one of the networks.
func (n networks) contain(local, remote netip.Addr) bool {
	for _, p := range n {
		if p.Contains(local.WithZone("")) && p.Contains(remote.WithZone("")) {
			return true
		}
	}
	return false
}

// Check returns an error if the gateway may not listen at one of its addresses. It
// is called before anything else is started.
func Check(o Options) error {
	trusted, err := parseNetworks(o.Trusted)
	for _, address := range o.Listen {
		if err != nil {
			break
		}
		err = checkAddress(address, o.TLS.isSet(), trusted)
	}
	return err
}

// checkAddress refuses a listen address that is neither loopback, nor encrypted,
// nor on a trusted network. On a wildcard address, connections from other networks
// are closed when they are accepted.
func checkAddress(address string, encrypted bool, trusted networks) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errhint.With(fmt.Errorf("%q is not an address", address), "write HOST:PORT, such as 127.0.0.1:18789")
	}
	at, err := netip.ParseAddr(host)
	switch {
	case host == "localhost" || err == nil && at.Unmap().IsLoopback() || encrypted:
		return nil
	case host == "" || err == nil && at.IsUnspecified():
		if len(trusted) > 0 {
			return nil
		}
	case err != nil:
		return errhint.With(fmt.Errorf("%q is not an address", address), "write an address of this machine in numbers, such as 127.0.0.1:18789")
	case trusted.contain(at.Unmap(), at.Unmap()):
		return nil
	}
	return errhint.With(fmt.Errorf("gateway on %s: %w", address, ErrExposed),
		"listen on 127.0.0.1, or give gateway.tls.certPath and keyPath, or declare the network with gateway.trustedNetwork if only trusted machines can reach it")
}

// IsLoopback reports whether a HOST:PORT is a loopback address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.Unmap().IsLoopback()
}

// removeStaleSocket removes a socket that an earlier process left. The caller holds
// the lock of the state directory.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return nil //nolint:nilerr // listening will say what is wrong with it
	}
	return os.Remove(path)
}

// maxSocketPath is the longest path that fits sockaddr_un.
const maxSocketPath = 107

func checkSocket(path string) error {
	if len(path) > maxSocketPath {
		return errhint.With(fmt.Errorf("the path of the socket has %d characters, and at most %d are possible: %s", len(path), maxSocketPath, path), "set ATOLL_STATE_DIR to a shorter path")
	}
	if strings.ContainsRune(path, 0) {
		return errors.New("the path of the socket is not a path")
	}
	return nil
}
