package textcheck

import (
	"net/url"
	"strings"
)

// TracePlaceholder is replaced by the id of a trace in links to traces.
const TracePlaceholder = "{trace}"

// maxLink bounds an address that pages link to.
const maxLink = 2048

// checkTraceLink refuses what is no http or https address with the placeholder after its
// host: an id must not change the host.
func checkTraceLink(text string) (message, hint string) {
	const example = "write the address of a page of your tool, such as https://langfuse.example.org/trace/{trace}"
	before, _, has := strings.Cut(text, TracePlaceholder)
	u, err := url.Parse(strings.ReplaceAll(text, TracePlaceholder, "0"))
	start, startErr := url.Parse(before)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "expected an address that begins with https:// or http://", example
	case u.User != nil:
		return "the address must not hold a name or a password", "whoever looks at the dashboard is shown it"
	case len(text) > maxLink || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "the address is too long, or has spaces or control characters", example
	case !has:
		return "the address has no {trace}", example
	case startErr != nil || start.Host != u.Host || start.Path == "":
		return "{trace} must come after the host", example
	}
	return "", ""
}
