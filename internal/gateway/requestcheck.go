package gateway

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// refusal is a request that neither protocol gets to see.
type refusal struct {
	status         int
	reason, detail string
}

// write answers as the rest of the interface does: a problem of RFC 9457.
func (f *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{ //nolint:errchkjson // the client is gone, then
		"type": "about:blank", "title": http.StatusText(f.status), "status": f.status, "code": f.reason, "detail": f.detail,
	})
}

// check looks at a request from outside: for whom it is, which page sent it, what
// its address gives away.
func (s *Server) check(r *http.Request) *refusal {
	switch {
	case s.draining.Load():
		return &refusal{http.StatusServiceUnavailable, "draining", "the gateway is shutting down"}
	case carriesSecret(r.URL):
		return &refusal{http.StatusBadRequest, "secret_in_url", "addresses end up in logs and histories: send a token in the header Authorization: Bearer TOKEN, or in connect"}
	case access.FromContext(r.Context()) == nil && !s.isOwnHost(r.Host):
		return &refusal{http.StatusMisdirectedRequest, "host", "this gateway is not known by that name: use its address, or add the name to gateway.hosts"}
	case !s.originAllowed(r):
		return &refusal{http.StatusForbidden, "origin", "pages of other sites may not use this gateway: add their origin to gateway.controlUi.allowedOrigins if they should"}
	}
	return nil
}

// secretNames are parameters that people put tokens in.
var secretNames = []string{"token", "access_token", "accesstoken", "auth", "authorization", "apikey", "api_key", "key", "password", "secret", "devicetoken", "device_token"}

// carriesSecret reports whether an address carries a token.
func carriesSecret(u *url.URL) bool {
	if u.User != nil || strings.Contains(u.Path, "atollgw_") {
		return true
	}
	query, _ := url.ParseQuery(u.RawQuery) // what cannot be read names nothing
	for name, values := range query {
		if slices.Contains(secretNames, strings.ToLower(name)) || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "atollgw_") }) {
			return true
		}
	}
	return false
}

// isOwnHost reports whether a request is for a name of ours. A page of another site
// can make its own name lead here, but not an address in numbers.
func (s *Server) isOwnHost(host string) bool {
	name := hostname(host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.hosts[name] || s.certificate != nil && s.certificate.covers(name)
}

// hostname is a Host without its port, in small letters.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// originAllowed reports whether the page that sent a request, if one did, may: one of
// this gateway's own, or of an origin that was configured.
func (s *Server) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		site := r.Header.Get("Sec-Fetch-Site") // browsers cannot be made to leave it out
		return site == "" || site == "same-origin" || site == "none" && !isUpgrade(r)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(origins) > 1 {
		return false
	}
	return s.origins[strings.ToLower(origins[0])] || s.isSameOrigin(origins[0], r.Host)
}

// isSameOrigin reports whether a page came from the address that it now asks.
func (s *Server) isSameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, host) {
		return false
	}
	if s.options.TLS.isSet() {
		return u.Scheme == "https"
	}
	return u.Scheme == "http"
}
