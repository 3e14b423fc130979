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

// ErrExposed is an address that anybody could listen in on.
var ErrExposed = errors.New("what is sent there could be read by others")

// networks are those that plain connections may cross.
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

// Check decides whether a gateway may listen where it is to, before anything else
// is made.
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

// checkAddress decides whether the gateway may listen at an address: on this
// machine always, elsewhere with encryption, or on a network that was declared to
// be trusted. At every address of the machine, connections from other networks
// are cut when they come in.
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

// IsLoopback reports whether an address is this machine's own.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.Unmap().IsLoopback()
}

// removeStaleSocket removes a socket that nobody serves any more. Whoever calls it holds
// the lock of the state directory.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return nil //nolint:nilerr // listening will say what is wrong with it
	}
	return os.Remove(path)
}

// maxSocketPath is what the kernel takes.
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
