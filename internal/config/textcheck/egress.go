package textcheck

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// PresetPrefix is what an entry of allow that names a preset begins with.
const PresetPrefix = "preset:"

// checkEgressRule wants an entry of allow in its short form; the long one has
// checks of its own.
func checkEgressRule(text string) (message, hint string) {
	if name, ok := strings.CutPrefix(text, PresetPrefix); ok {
		return checkEgressPreset(name)
	}
	if _, _, err := hostname.ParsePatternPort(text); err != nil {
		return badPattern(text, err)
	}
	return "", ""
}

func checkEgressDeny(text string) (message, hint string) {
	if _, _, err := hostname.ParseWidePatternPort(text); err != nil {
		message, hint = badPattern(text, err)
		if errors.Is(err, hostname.ErrEverything) {
			hint = `write mode: "off" to reach nothing, or "enforce" to reach only what allow names`
		}
		return message, hint
	}
	return "", ""
}

func checkEgressHost(text string) (message, hint string) {
	if _, err := hostname.ParsePattern(text); err != nil {
		return badPattern(text, err)
	}
	return "", ""
}

func checkEgressWide(text string) (message, hint string) {
	if _, err := hostname.ParseWidePattern(text); err != nil {
		return badPattern(text, err)
	}
	return "", ""
}

// badPattern words why a pattern was refused and what to write.
func badPattern(text string, err error) (message, hint string) {
	message = fmt.Sprintf("%s is no name of a host that a rule can have: %v", wording.Quote(text), err)
	host := hostIn(text)
	switch {
	case errors.Is(err, hostname.ErrEverything):
		hint = `write mode: "public" to reach every public name, or name the hosts`
	case errors.Is(err, hostname.ErrSuffix):
		hint = "name the host, or write *. and a domain that one owner has, such as *.example.com"
	case errors.Is(err, hostname.ErrAddress) && host == "":
		hint = "name the host; addresses that are not public are opened for names by private"
	case errors.Is(err, hostname.ErrNonASCII):
		hint = "write the name in its ASCII form, which begins with xn--"
	case host != "":
		hint = "write " + wording.Quote(host)
	default:
		hint = "write NAME, *.NAME or NAME:PORT, such as example.com"
	}
	return message, hint
}

// hostIn returns the name in a text that is a URL, or "".
func hostIn(text string) string {
	if !strings.Contains(text, "/") {
		return ""
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	name, err := hostname.Canonical(u.Hostname())
	if err != nil {
		return ""
	}
	return name
}

func checkEgressPreset(text string) (message, hint string) {
	if preset.Known(text) {
		return "", ""
	}
	if near := wording.Nearest(text, preset.Names()); near != "" {
		return "unknown preset " + wording.Quote(text), fmt.Sprintf("did you mean %q?", near)
	}
	return "unknown preset " + wording.Quote(text), "known presets: " + strings.Join(preset.Names(), ", ")
}

// minPrivate is the fewest bits of a network that private may have, for IPv4
// and IPv6: more would be most of the internet.
const minPrivate4, minPrivate6 = 8, 7

// metadataAddresses are those of the metadata services of clouds.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("fd00:ec2::254"),
}

func checkPrivateRange(text string) (message, hint string) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		if a, bad := netip.ParseAddr(text); bad == nil {
			return "expected a network, found the address " + wording.Quote(text), "write " + wording.Quote(netip.PrefixFrom(a, a.BitLen()).String())
		}
		return "expected a network such as 10.2.3.0/24, found " + wording.Quote(text), ""
	}
	switch {
	case slices.ContainsFunc(metadataAddresses, func(a netip.Addr) bool { return prefix.IsSingleIP() && prefix.Addr() == a }):
		return "the metadata service of a cloud is never reached", ""
	case prefix.Addr().Is4In6():
		return "IPv4 networks are written in IPv4's form", ""
	case prefix.Addr().Is6() && prefix.Bits() < minPrivate6, prefix.Addr().Is4() && prefix.Bits() < minPrivate4:
		return "the network " + wording.Quote(text) + " has more than private addresses", "name the networks that the allowed hosts are in"
	}
	return "", ""
}

func checkProxyURL(text string) (message, hint string) {
	return proxy(text, "http", "http://HOST:PORT")
}

func checkSocksURL(text string) (message, hint string) {
	return proxy(text, "socks5", "socks5://HOST:PORT")
}

// proxy wants the address of a proxy and nothing else in it.
func proxy(text string, scheme, form string) (message, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != scheme || u.Hostname() == "" || u.Port() == "":
		return "expected the address of a proxy", "write " + form
	case u.User != nil:
		return "the address must not hold a name or a password", "write " + form
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "the address must have no path, query or fragment", "write " + form
	}
	return "", ""
}

var (
	methodForm     = lazyregexp.New(`^[A-Z][A-Z-]{0,31}$`)
	urlPatternForm = lazyregexp.New(`^/[A-Za-z0-9/._~!$&'()*+,=:@-]*$`)
	secretNameForm = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	headerNameForm = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
)

func checkHTTPMethod(text string) (message, hint string) {
	upper := strings.ToUpper(text)
	switch {
	case upper == "CONNECT" || upper == "TRACE":
		return "the method " + upper + " is never allowed", ""
	case !methodForm.MatchString(text) && methodForm.MatchString(upper):
		return "methods are case-sensitive", "write " + wording.Quote(upper)
	case !methodForm.MatchString(text):
		return "expected an HTTP method such as GET, found " + wording.Quote(text), ""
	}
	return "", ""
}

func checkURLPattern(text string) (message, hint string) {
	const form = `write the path from its beginning, such as "/repos/acme/**", without a query`
	switch {
	case len(text) > 1000 || !urlPatternForm.MatchString(text):
		return "is no pattern of paths", form
	case strings.Contains(text, "//") || strings.Contains(text+"/", "/./") || strings.Contains(text+"/", "/../"):
		return "is a path that can be read in two ways", form
	case strings.Contains(text, "***") || strings.Count(text, "**") > 3 || strings.Count(text, "*") > 12:
		return "has too many wildcards", form
	}
	for segment := range strings.SplitSeq(text, "/") {
		if strings.Contains(segment, "**") && segment != "**" {
			return "** stands for whole segments", form
		}
	}
	return "", ""
}

func checkSecretName(text string) (message, hint string) {
	if !secretNameForm.MatchString(text) {
		return "the name of a secret must be 1 to 64 lower-case letters, digits, '_' and '-', not starting with '_' or '-'", ""
	}
	return "", ""
}
