package textcheck

import (
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// checkAgentURL wants an address in which there is nothing secret.
func checkAgentURL(text string) (message, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "expected an address such as https://agents.example.org/poet", ""
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "the address must not hold a name, a password, a query or a fragment", "put the token into token"
	}
	return "", ""
}

// checkCollectorURL wants an address in which there is nothing secret.
func checkCollectorURL(text string) (message, hint string) {
	if message, _ = checkAgentURL(text); message != "" {
		return "expected an address such as http://127.0.0.1:4318/v1/traces, without a password or a query", "headers are in OTEL_EXPORTER_OTLP_HEADERS"
	}
	return "", ""
}

// checkGatewayURL wants an address in which there is nothing secret.
func checkGatewayURL(text string) (message, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return "expected an address such as ws://127.0.0.1:18789", ""
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "the address must not hold a name, a password, a query or a fragment", "put the token into token"
	case strings.Trim(u.Path, "/") != "":
		return "the address must not have a path", ""
	}
	return "", ""
}

// VariantIDForm is a name that can stand in a request, a table and a header.
var VariantIDForm = lazyregexp.New(`^[a-z0-9][a-z0-9._:-]{0,63}$`)

func checkVariantID(text string) (message, hint string) {
	if !VariantIDForm.MatchString(text) {
		return "a variant's id must be 1 to 64 lower-case letters, digits and ._:-, starting with a letter or digit", ""
	}
	return "", ""
}
