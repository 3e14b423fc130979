package textcheck

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

var (
	interfaceForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}$`)
	hostNameForm  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
)

func checkTrustedNetwork(text string) (message, hint string) {
	const example = "write a network such as 10.0.0.0/24, or the name of an interface"
	if p, err := netip.ParsePrefix(text); err == nil {
		if p.Bits() == 0 {
			return "every address there is is no network that can be trusted", example
		}
		return "", ""
	}
	if strings.Contains(text, "/") || !interfaceForm.MatchString(text) {
		return "is no network and no name of an interface", example
	}
	return "", ""
}

func checkIPAddress(text string) (message, hint string) {
	if _, err := netip.ParseAddr(text); err != nil {
		return "is no address", "write one in numbers, such as 192.168.1.10"
	}
	return "", ""
}

func checkHostName(text string) (message, hint string) {
	if !hostNameForm.MatchString(text) || len(text) > 253 {
		return "is no name of a host", "write it without a scheme and a port, such as gateway.example.org"
	}
	return "", ""
}

// AnyOrigin is how OpenClaw's files allow every page there is. They load; here it
// allows none.
const AnyOrigin = "*"

// checkOrigin wants an origin as browsers send it.
func checkOrigin(text string) (message, hint string) {
	if text == AnyOrigin {
		return "", ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return "is no origin", "write it as browsers do, such as https://dashboard.example.org"
	}
	return "", ""
}
