package gateway

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// refusal is the answer to a request that no protocol handler gets.
type refusal struct {
	status         int
	reason, detail string
	header         http.Header // more headers of the answer
}

// write answers with a problem of RFC 9457, as package rest does.
func (f *refusal) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), f.header)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{ //nolint:errchkjson // the client is gone, then
		"type": "about:blank", "title": http.StatusText(f.status), "status": f.status, "code": f.reason, "detail": f.detail,
	})
}

// check refuses a request while draining, with a secret in its URL, for a foreign
// Host, or from a page of a foreign origin.
func (s *Server) check(r *http.Request) *refusal {
	switch {
	case s.draining.Load():
		return &refusal{status: http.StatusServiceUnavailable, reason: "draining", detail: "the gateway is shutting down"}
	case carriesSecret(r.URL):
		return &refusal{status: http.StatusBadRequest, reason: "secret_in_url", detail: "addresses end up in logs and histories: send a token in the header Authorization: Bearer TOKEN, or in connect"}
	case access.FromContext(r.Context()) == nil && !s.isOwnHost(r.Host):
		return &refusal{status: http.StatusMisdirectedRequest, reason: "host", detail: "this gateway is not known by that name: use its address, or add the name to gateway.hosts"}
	case !s.originAllowed(r):
		return &refusal{status: http.StatusForbidden, reason: "origin", detail: "pages of other sites may not use this gateway: add their origin to gateway.controlUi.allowedOrigins if they should"}
	}
	return nil
}

// secretNames are query parameters that are used for tokens.
var secretNames = []string{"token", "access_token", "accesstoken", "auth", "authorization", "apikey", "api_key", "key", "password", "secret", "devicetoken", "device_token"}

// tokenForm matches tokens of the gateway, those for E2B's clients among them.
var tokenForm = lazyregexp.New(`atollgw_|e2b_[0-9a-f]{64}`)

// carriesSecret reports whether a URL contains a token.
func carriesSecret(u *url.URL) bool {
	if u.User != nil || tokenForm.MatchString(u.Path) {
		return true
	}
	query, _ := url.ParseQuery(u.RawQuery) // what cannot be read names nothing
	for name, values := range query {
		if slices.Contains(secretNames, strings.ToLower(name)) || slices.ContainsFunc(values, tokenForm.MatchString) {
			return true
		}
	}
	return false
}

// isOwnHost reports whether the Host of a request names this gateway. An IP address
// always does: DNS rebinding needs a name.
func (s *Server) isOwnHost(host string) bool {
	name := hostname(host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.hosts[name] || s.certificate != nil && s.certificate.covers(name)
}

// hostname returns a Host without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// originAllowed reports whether a request comes from no browser page, from a page
// of this gateway, or from a configured origin.
func (s *Server) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		site := r.Header.Get("Sec-Fetch-Site") // browsers cannot be made to leave it out
		return site == "" || site == "same-origin" || site == "none" && !isUpgrade(r) || opensPage(r)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(origins) > 1 {
		return false
	}
	return s.origins[strings.ToLower(origins[0])] || s.isSameOrigin(origins[0], r.Host)
}

// opensPage reports whether a person follows a link to one of the gateway's pages. The
// answer is the same for everybody and holds nothing of an account.
func opensPage(r *http.Request) bool {
	return r.Method == http.MethodGet && dashboard.Serves(r.URL.Path) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// isSameOrigin reports whether an origin is the address that the request is for.
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
