// Package portproxy passes HTTP requests and WebSockets on to ports inside sandboxes
// that programs made. Each port has a host name of its own, so that pages of a sandbox
// share no origin with the gateway or with another sandbox, and needs the token of its
// sandbox.
package portproxy

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// TokenCookie is a cookie that holds the token of a sandbox's ports, for browsers.
const TokenCookie = "atoll-port-token"

const (
	// MaxRequests bounds the requests and WebSockets under way to one sandbox.
	MaxRequests = 64
	maxHeader   = 64 << 10 // of an answer from inside
	// trafficTokenHeader is what the clients of E2B send the token of ports in.
	trafficTokenHeader = "E2b-Traffic-Access-Token" //nolint:gosec // the name of a header
)

// keyWords are what keys of the gateway begin with.
var keyWords = []string{"atollgw_", "e2b_"}

// hostForm matches the host name of a port: the port, the sandbox's id, and a name of
// the gateway.
var hostForm = lazyregexp.New(`^([1-9][0-9]{0,4})-([a-z2-7]{20})\.(.+)$`)

// Target is a port of a sandbox.
type Target struct {
	ID      string
	Port    int
	Gateway string // the rest of the host name
}

// Parse returns the port that a host name is for; nil if it is for none.
func Parse(host string) *Target {
	found := hostForm.FindStringSubmatch(host)
	if found == nil {
		return nil
	}
	port, err := strconv.Atoi(found[1])
	if err != nil || port > 65535 {
		return nil
	}
	return &Target{ID: found[2], Port: port, Gateway: found[3]}
}

// Proxy passes requests on.
type Proxy struct {
	Made *sandboxes.Service
	// Own serves ports of every sandbox at which the gateway itself answers, by port.
	Own map[int]func(w http.ResponseWriter, r *http.Request, id string)

	mu   sync.Mutex
	open map[string]int // requests under way, by sandbox
}

// Serve passes a request on to a port, if it has the token of the sandbox.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, t *Target) {
	if own := p.Own[t.Port]; own != nil {
		own(w, r, t.ID)
		return
	}
	record, err := p.Made.Get(r.Context(), t.ID)
	if err != nil || record.ID != t.ID || !hasToken(r, record.Details.PortToken) { // which ids there are is not told
		refuse(w, http.StatusUnauthorized, "unauthorized", "this needs the port token of the sandbox, in the header "+api.PortTokenHeader)
		return
	}
	leave, ok := p.enter(t.ID)
	if !ok {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too_many_connections", "too many requests to this sandbox are under way")
		return
	}
	defer leave()
	in, err := p.Made.Enter(r.Context(), record)
	if err != nil {
		refuse(w, http.StatusBadGateway, "sandbox_not_running", "the sandbox does not run")
		return
	}
	defer in.Leave()
	forward(w, r.WithContext(in.Ctx), in, t)
}

// enter counts a request to a sandbox until leave is called.
func (p *Proxy) enter(id string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]int{}
	}
	if p.open[id] >= MaxRequests {
		return nil, false
	}
	p.open[id]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[id]--; p.open[id] == 0 {
			delete(p.open, id)
		}
	}, true
}

// hasToken reports whether a request has a token, in a header or a cookie.
func hasToken(r *http.Request, token string) bool {
	given := cmp.Or(r.Header.Get(api.PortTokenHeader), r.Header.Get(trafficTokenHeader))
	if cookie, err := r.Cookie(TokenCookie); given == "" && err == nil {
		given = cookie.Value
	}
	return token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1
}

// forward passes a request on over the wire.
func forward(w http.ResponseWriter, r *http.Request, in *sandboxes.Inside, t *Target) {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return in.Machine.Dial(ctx, "tcp", t.Port) },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite:      func(q *httputil.ProxyRequest) { rewrite(q, t) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { answerError(w, err) },
	}
	// An answer may begin while the end of the request's body is still being read: without
	// this the server would close the body then, and the answer would end too early.
	_ = http.NewResponseController(w).EnableFullDuplex() // only HTTP/1 needs it
	proxy.ServeHTTP(w, r)
}

// rewrite makes a request one for the port, without the credentials of the gateway.
func rewrite(q *httputil.ProxyRequest, t *Target) {
	q.SetURL(&url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", strconv.Itoa(t.Port))})
	q.SetXForwarded()
	h := q.Out.Header
	for _, name := range []string{api.PortTokenHeader, trafficTokenHeader, "X-Access-Token", "X-Api-Key"} {
		h.Del(name)
	}
	if slices.ContainsFunc(keyWords, func(word string) bool { return strings.Contains(h.Get("Authorization"), word) }) {
		h.Del("Authorization")
	}
	cookies := q.Out.Cookies()
	h.Del("Cookie")
	for _, cookie := range cookies {
		if cookie.Name != TokenCookie {
			q.Out.AddCookie(cookie)
		}
	}
}

func answerError(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, sandboxes.ErrEnding) {
		refuse(w, http.StatusBadGateway, "sandbox_not_running", "the sandbox does not run")
		return
	}
	refuse(w, http.StatusBadGateway, "port_closed", "nothing answers at this port of the sandbox")
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(&api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}) // the client may be gone
}
