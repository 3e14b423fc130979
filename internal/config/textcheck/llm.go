package textcheck

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The forms of the names of providers and of models.
var (
	ProviderNameForm = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	ModelForm        = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}\*?$|^\*$`)
)

var bodyMemberForm = lazyregexp.New(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$`)

func checkBodyMember(text string) (message, hint string) {
	if !bodyMemberForm.MatchString(text) {
		return "a name in a request must be 1 to 128 letters, digits and _-.", ""
	}
	return "", ""
}

func checkProviderName(text string) (message, hint string) {
	if !ProviderNameForm.MatchString(text) {
		return "a provider's name must be 1 to 64 lower-case letters, digits, '_' and '-', not starting with '_' or '-'", ""
	}
	return "", ""
}

func checkModel(text string) (message, hint string) {
	if !ModelForm.MatchString(text) {
		return "a model's name must be letters, digits and ._:/@+-, with a * only at its end", ""
	}
	return "", ""
}

// checkUpstreamURL wants an address that nothing can be smuggled in: who is
// asked, and with which key, must be plain to see.
func checkUpstreamURL(text string) (message, hint string) {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(socket) || filepath.Clean(socket) != socket {
			return "expected unix: and the plain absolute path of a socket", ""
		}
		return "", ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "expected an address such as https://api.example.org", ""
	case u.User != nil:
		return "the address must not hold a name or a password", "put the key into keys"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "the address must not have a query or a fragment", ""
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return "the address must not end in /v1: it is added to every request", "remove /v1"
	case strings.Contains(u.EscapedPath(), "%") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/."):
		return "the address has a path that can be read in two ways", "write a plain path, or none"
	}
	return "", ""
}
