package policy

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ResolveMedia finds what an agent names as media to send out: the address of a
// web resource, returned as it is, or the host path of a file in the workspace.
// Other mounts are for work, not for sending.
func (m *PathMap) ResolveMedia(input string) (string, error) {
	ref := trim(input)
	switch scheme := mediaScheme(ref); scheme {
	case "http", "https":
		return ref, nil
	case "file":
		p, err := fileURLPath(ref)
		if err != nil {
			return "", err
		}
		ref = p
	case "":
	default:
		return "", errhint.With(
			fmt.Errorf("sandbox media %q: addresses of the kind %s: are not accepted", clip(ref), scheme),
			"Write the file below the workspace and name its path.")
	}
	found, err := m.Resolve(ref, "")
	if err != nil {
		return "", err
	}
	if !within(found.Container, m.workdir) {
		return "", m.escapes(input)
	}
	return found.Host, nil
}

// mediaScheme is the scheme of an address, or "" for a path.
func mediaScheme(ref string) string {
	scheme, _, ok := strings.Cut(ref, ":")
	scheme = strings.ToLower(scheme)
	if !ok || scheme == "" || scheme[0] < 'a' || scheme[0] > 'z' || strings.ContainsAny(scheme, "/.\\ ") {
		return ""
	}
	return scheme
}

// fileURLPath is the path of a file: address of this machine.
func fileURLPath(ref string) (string, error) {
	u, err := url.Parse(ref)
	switch {
	case err != nil:
		return "", fmt.Errorf("sandbox media %q: %w", clip(ref), err)
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("sandbox media %q: names another machine", clip(ref))
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("sandbox media %q: a file address has no query or fragment", clip(ref))
	case !strings.HasPrefix(u.Path, "/"):
		return "", fmt.Errorf("sandbox media %q: not an absolute path", clip(ref))
	case strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"):
		return "", fmt.Errorf("sandbox media %q: contains an encoded slash", clip(ref))
	}
	return u.Path, nil
}

// clip shortens hostile text for a message.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
