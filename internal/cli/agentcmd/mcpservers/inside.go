package mcpservers

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/policy/variable"
)

// Sandbox is what decides whether a server can work in a sandbox.
type Sandbox struct {
	Has      func(program string) bool        // it has the program
	Reaches  func(host string, port int) bool // its egress allows the name
	Services []int                            // ports of the host's loopback that it shows
}

// fetchers are programs that fetch from the network what they run, or need an engine.
var fetchers = []string{"npx", "pnpx", "bunx", "uvx", "pipx", "docker", "podman"}

// Missing returns why a server cannot work in a sandbox, with what would help; "" if it can.
func (s *Server) Missing(in *Sandbox) string {
	switch {
	case s.Confidential:
		return "its variables and headers stay outside"
	case s.URL != "":
		return s.unreachable(in)
	case s.Command == "":
		return "it has neither a program nor an address"
	case slices.Contains(fetchers, path.Base(s.Command)):
		return s.Command + " fetches it from the network"
	case holdsSecret(s.Args) || strings.Contains(strings.Join(s.Args, " "), "${"):
		return "its arguments look like credentials, which stay outside"
	case strings.HasPrefix(s.Command, "-") || !in.Has(s.Command):
		return fmt.Sprintf("there is no program %q", s.Command)
	}
	return ""
}

// unreachable says which flag lets the sandbox reach a server; "" if it does.
func (s *Server) unreachable(in *Sandbox) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
		return "its address is not a plain one of http or https"
	}
	port := 443
	if u.Scheme == "http" {
		port = 80
	}
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port())
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		if slices.Contains(in.Services, port) {
			return ""
		}
		return fmt.Sprintf("--service %d shows it", port)
	}
	switch {
	case in.Reaches(host, port):
		return ""
	case u.Port() == "":
		return "--egress " + host + " lets it through"
	}
	return fmt.Sprintf("--egress %s:%d lets it through", host, port)
}

// randomText is a long word of letters and digits, as keys are.
var randomText = regexp.MustCompile(`^[A-Za-z0-9_-]{32,}$`)

// holdsSecret reports whether arguments look as if one were a credential.
func holdsSecret(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		at := strings.Index(arg, "://")
		return variable.IsSecret(name) || strings.Contains(strings.ToLower(arg), "bearer ") || at >= 0 && strings.Contains(arg[at:], "@") ||
			randomText.MatchString(arg) && strings.ContainsAny(arg, "0123456789")
	})
}
