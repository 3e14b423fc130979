// Package localport serves the DevTools protocol of one browser on a port of this
// machine's loopback interface, as Chromium itself does, for programs of its owner.
package localport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
)

// Browser is the browser that is served.
type Browser interface {
	Version(ctx context.Context) (*api.BrowserVersion, error)
	Tabs(ctx context.Context) (*api.BrowserTabs, error)
	// ServeHTTP carries the protocol over a WebSocket.
	http.Handler
}

const (
	headerTime = 10 * time.Second
	maxHeader  = 16 << 10
)

// Serve serves a browser on l until the context ends. What it serves has no password:
// requests of other users of this machine and of web pages are refused.
func Serve(ctx context.Context, l net.Listener, b Browser) error {
	h := newHandler(b, l.Addr().String())
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer h.sockets.Wait()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler answers the requests of one port.
type handler struct {
	browser Browser
	address string // of the port
	secret  string // in the path of the WebSocket
	isOwner func(r *http.Request) bool
	mux     *http.ServeMux
	sockets sync.WaitGroup // that are open
}

func newHandler(b Browser, address string) *handler {
	h := &handler{browser: b, address: address, secret: rand.Text(), isOwner: isOwner, mux: http.NewServeMux()}
	for _, path := range []string{"/json/version", "/json/version/{$}"} {
		h.mux.HandleFunc("GET "+path, h.version)
	}
	for _, path := range []string{"/json", "/json/{$}", "/json/list", "/json/list/{$}"} {
		h.mux.HandleFunc("GET "+path, h.list)
	}
	h.mux.HandleFunc("GET /devtools/browser/"+h.secret, h.socket)
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !isOwnHost(r.Host):
		http.Error(w, "this port is not known by that name: use 127.0.0.1", http.StatusMisdirectedRequest)
	case isPage(r):
		http.Error(w, "web pages may not use this port", http.StatusForbidden)
	case !h.isOwner(r):
		http.Error(w, "this port is for the user who opened it", http.StatusForbidden)
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// isOwnHost reports whether the Host of a request is an address or localhost: a page that
// has another name resolved to this machine has that name here.
func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

// isPage reports whether a web browser sent a request: it says so in these headers, and
// no page can take them away.
func isPage(r *http.Request) bool {
	return len(r.Header["Origin"]) > 0 || len(r.Header["Sec-Fetch-Site"]) > 0 || len(r.Header["Sec-Fetch-Mode"]) > 0
}

func (h *handler) version(w http.ResponseWriter, r *http.Request) {
	v, err := h.browser.Version(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	v.Socket = "ws://" + h.address + "/devtools/browser/" + h.secret
	answer(w, v)
}

// target is a tab in the words of the DevTools protocol. It has no WebSocket of its own:
// programs attach to it through that of the browser.
type target struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	found, err := h.browser.Tabs(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	list := make([]target, 0, len(found.Tabs))
	for _, t := range found.Tabs {
		list = append(list, target{t.ID, "page", t.Title, t.URL})
	}
	answer(w, list)
}

func (h *handler) socket(w http.ResponseWriter, r *http.Request) {
	h.sockets.Add(1)
	defer h.sockets.Done()
	h.browser.ServeHTTP(w, r)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the client may be gone
}
